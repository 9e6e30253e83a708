//! Slots of a turn: waiting until a model may plan it, and generate.

use crate::admission::Admission;
use crate::error::ApiError;
use crate::served_model::{ModelGates, ServedModel};
use crate::state::App;
use crate::turn::choice::Permits;

/// Waits for a planning slot. If the host batches, planning and generation share the slots: first
/// the model's own, then the server's.
pub(super) async fn enter_planning(
    app: &App,
    served: &ServedModel,
    choices: usize,
    admission: Admission,
) -> Result<Permits, ApiError> {
    let waiting = &app.metrics().waiting_requests;
    let of_server = || app.generation_gate().acquire(choices, waiting, admission);
    Ok(match &served.gates {
        ModelGates::Batched(None) => [of_server().await?].into(),
        ModelGates::Batched(Some(gate)) => {
            let of_model = gate.acquire(choices, waiting, admission).await?;
            [of_model, of_server().await?].into()
        }
        ModelGates::Serial(gates) => [gates.planning.acquire(1, waiting, admission).await?].into(),
    })
}

/// Waits for the generation slot of a serial model: first its own, then the server's. Releases the
/// planning slot.
pub(super) async fn enter_generation(
    app: &App,
    served: &ServedModel,
    planning: Permits,
    admission: Admission,
) -> Result<Permits, ApiError> {
    let ModelGates::Serial(serial_gates) = &served.gates else { return Ok(planning) };
    let waiting = &app.metrics().waiting_requests;
    let of_model = serial_gates.generation.acquire(1, waiting, admission).await?;
    Ok([of_model, app.generation_gate().acquire(1, waiting, admission).await?].into())
}
