//! Monitoring during a phase: health checks, memory, and progress lines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;

use crate::bench::serve::client::Client;
use crate::bench::serve::record::RequestRecord;
use crate::bench::stats::nanos;

/// Interval between health checks.
const HEALTH_INTERVAL: Duration = Duration::from_millis(25);
/// Interval between memory samples.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Observations of one phase.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// Duration of each health check in nanoseconds.
    pub(super) health_ns: Vec<u64>,
    /// Number of health checks not answered with 200.
    pub(super) unhealthy: usize,
    /// Memory of this process in KiB, once per second. Empty without /proc.
    pub(super) memory: Vec<u64>,
    /// Duration of the phase.
    pub(super) took: Duration,
}

#[derive(Debug, Default)]
struct MonitorState {
    /// `None` between phases.
    phase: Option<PhaseProgress>,
    observations: Observations,
}

#[derive(Debug)]
struct PhaseProgress {
    name: &'static str,
    started: Instant,
    total: usize,
    done: usize,
    generated: usize,
    faulty: usize,
}

/// The background monitor.
pub(super) struct Monitor {
    state: Arc<Mutex<MonitorState>>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Observations {
    fn checked(&mut self, took: Duration, is_healthy: bool) {
        self.health_ns.push(nanos(took));
        self.unhealthy += usize::from(!is_healthy);
    }
}

impl MonitorState {
    /// Samples memory. Returns a progress line if one is due.
    fn observe(&mut self, report_due: bool) -> Option<String> {
        let size = resident_kib();
        self.observations.memory.extend(size);
        report_due.then(|| self.phase.as_ref().map(|phase| phase.line(size, &self.observations)))?
    }
}

impl Monitor {
    /// Starts monitoring. The client should not share connections with others.
    pub(super) fn start(client: Client) -> Monitor {
        let state = Arc::new(Mutex::new(MonitorState::default()));
        let (health, rest) = (state.clone(), state.clone());
        let health_checks = tokio::spawn(async move {
            loop {
                let started = Instant::now();
                let response = client.get("/healthz").await;
                health
                    .lock()
                    .observations
                    .checked(started.elapsed(), matches!(response, Ok((200, _))));
                tokio::time::sleep(HEALTH_INTERVAL).await;
            }
        });
        let observer = tokio::spawn(async move {
            let mut last_report = Instant::now();
            loop {
                let report_due = last_report.elapsed() >= PROGRESS_INTERVAL;
                if report_due {
                    last_report = Instant::now();
                }
                if let Some(line) = rest.lock().observe(report_due) {
                    eprintln!("{line}");
                }
                tokio::time::sleep(MEMORY_INTERVAL).await;
            }
        });
        Monitor { state, tasks: [health_checks, observer] }
    }

    /// Begins a phase and clears earlier observations.
    pub(super) fn begin(&self, name: &'static str, total: usize) {
        let mut state = self.state.lock();
        let phase = PhaseProgress {
            name,
            started: Instant::now(),
            total,
            done: 0,
            generated: 0,
            faulty: 0,
        };
        *state = MonitorState {
            phase: Some(phase),
            observations: Observations {
                memory: resident_kib().into_iter().collect(),
                ..Observations::default()
            },
        };
    }

    /// Counts a finished request.
    pub(super) fn count(&self, record: &RequestRecord) {
        if let Some(phase) = &mut self.state.lock().phase {
            phase.done += 1;
            phase.generated += usize::from(record.tokens > Some(0));
            phase.faulty += usize::from(record.error.is_some());
        }
    }

    /// Ends the phase.
    pub(super) fn end(&self) -> Observations {
        let mut state = self.state.lock();
        let took = state.phase.take().map_or(Duration::ZERO, |phase| phase.started.elapsed());
        let mut observations = std::mem::take(&mut state.observations);
        observations.memory.extend(resident_kib());
        Observations { took, ..observations }
    }

    /// Stops monitoring. Error: a monitoring task failed.
    pub(super) async fn stop(self) -> Result<()> {
        for task in self.tasks {
            task.abort();
            match task.await {
                Err(error) if !error.is_cancelled() => {
                    return Err(error).context("the monitor failed");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl PhaseProgress {
    fn line(&self, memory: Option<u64>, observations: &Observations) -> String {
        let slowest = observations.health_ns.iter().max().copied().unwrap_or(0) as f64 / 1e6;
        format!(
            "{} {} of {} in {:.0} s: {} whole generations, {} faulty, {} health checks ({} \
             failed, slowest {slowest:.1} ms), {} MiB",
            self.name,
            self.done,
            self.total,
            self.started.elapsed().as_secs_f64(),
            self.generated,
            self.faulty,
            observations.health_ns.len(),
            observations.unhealthy,
            memory.map_or("?".to_owned(), |kib| (kib / 1024).to_string()),
        )
    }
}

/// Resident memory of this process in KiB; `None` without /proc.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
