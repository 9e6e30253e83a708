//! Admission slots of a request: waiting until a model may plan it, and generate.

use crate::admission::Admission;
use crate::error::ApiError;
use crate::generation::choice::Permits;
use crate::served_model::{ModelGates, ServedModel};
use crate::state::App;

/// Waits for a planning slot. A request that gets one keeps its place: it is not refused where it
/// waits to generate, because of newer ones. If the host batches, planning and generation share the
/// slots: first the model's own, then the server's.
pub(super) async fn enter_planning(
    app: &App,
    served: &ServedModel,
    choices: usize,
    admission: &mut Admission,
) -> Result<Permits, ApiError> {
    let (waiting, of_server) = (&app.metrics().waiting_requests, app.generation_gate());
    Ok(match &served.gates {
        ModelGates::Batched(None) => [of_server.acquire(choices, waiting, admission).await?].into(),
        ModelGates::Batched(Some(gate)) => {
            let of_model = gate.acquire(choices, waiting, admission).await?;
            [of_model, of_server.acquire(choices, waiting, admission).await?].into()
        }
        ModelGates::Serial(gates) => {
            for later in [&gates.generation, of_server] {
                later.check_queue(*admission)?;
            }
            let planning = gates.planning.acquire(1, waiting, admission).await?;
            admission.admit();
            [planning].into()
        }
    })
}

/// Waits for the generation slot of a serial model: first its own, then the server's. Releases the
/// planning slot.
pub(super) async fn enter_generation(
    app: &App,
    served: &ServedModel,
    planning: Permits,
    admission: &mut Admission,
) -> Result<Permits, ApiError> {
    let ModelGates::Serial(serial_gates) = &served.gates else { return Ok(planning) };
    let waiting = &app.metrics().waiting_requests;
    let of_model = serial_gates.generation.acquire(1, waiting, admission).await?;
    Ok([of_model, app.generation_gate().acquire(1, waiting, admission).await?].into())
}
