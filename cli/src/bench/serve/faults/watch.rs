//! While requests run: health checks, memory, and a line of progress now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;

use crate::bench::serve::http::Client;
use crate::bench::serve::record::{Record, nanos};

/// Pause between health checks.
const HEALTH: Duration = Duration::from_millis(25);
/// Pause between looks at memory.
const MEMORY: Duration = Duration::from_secs(1);
/// Pause between lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// What was seen in one phase.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How long each health check took, in nanoseconds.
    pub(super) health_ns: Vec<u64>,
    /// Health checks that were not answered 200.
    pub(super) unhealthy: usize,
    /// Memory of this process, in KiB: once a second. Empty where there is no /proc.
    pub(super) memory: Vec<u64>,
    /// How long the phase took.
    pub(super) took: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// None between phases.
    phase: Option<Phase>,
    seen: Seen,
}

#[derive(Debug)]
struct Phase {
    name: &'static str,
    begun: Instant,
    total: usize,
    done: usize,
    generated: usize,
    faulty: usize,
}

/// Looks on in the background.
pub(super) struct Watch {
    state: Arc<Mutex<State>>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Seen {
    fn checked(&mut self, took: Duration, is_healthy: bool) {
        self.health_ns.push(nanos(took));
        self.unhealthy += usize::from(!is_healthy);
    }
}

impl State {
    /// Looks at memory. The line of progress, if it is time for one.
    fn look(&mut self, is_time: bool) -> Option<String> {
        let size = resident();
        self.seen.memory.extend(size);
        is_time.then(|| self.phase.as_ref().map(|phase| phase.line(size, &self.seen)))?
    }
}

impl Watch {
    /// Begins to look on. The client should share no connection with others.
    pub(super) fn start(client: Client) -> Watch {
        let state = Arc::new(Mutex::new(State::default()));
        let (health, rest) = (state.clone(), state.clone());
        let checks = tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                let answer = client.get("/healthz").await;
                health.lock().seen.checked(begun.elapsed(), matches!(answer, Ok((200, _))));
                tokio::time::sleep(HEALTH).await;
            }
        });
        let looks = tokio::spawn(async move {
            let mut told = Instant::now();
            loop {
                let is_time = told.elapsed() >= PROGRESS;
                if is_time {
                    told = Instant::now();
                }
                if let Some(line) = rest.lock().look(is_time) {
                    eprintln!("{line}");
                }
                tokio::time::sleep(MEMORY).await;
            }
        });
        Watch { state, tasks: [checks, looks] }
    }

    /// A phase begins. What was seen before is forgotten.
    pub(super) fn begin(&self, name: &'static str, total: usize) {
        let mut state = self.state.lock();
        let phase = Phase { name, begun: Instant::now(), total, done: 0, generated: 0, faulty: 0 };
        *state = State {
            phase: Some(phase),
            seen: Seen { memory: resident().into_iter().collect(), ..Seen::default() },
        };
    }

    /// A request is over.
    pub(super) fn count(&self, record: &Record) {
        if let Some(phase) = &mut self.state.lock().phase {
            phase.done += 1;
            phase.generated += usize::from(record.tokens > Some(0));
            phase.faulty += usize::from(record.error.is_some());
        }
    }

    /// The phase is over.
    pub(super) fn end(&self) -> Seen {
        let mut state = self.state.lock();
        let took = state.phase.take().map_or(Duration::ZERO, |phase| phase.begun.elapsed());
        let mut seen = std::mem::take(&mut state.seen);
        seen.memory.extend(resident());
        Seen { took, ..seen }
    }

    /// Looks away. An error where looking on has failed.
    pub(super) async fn stop(self) -> Result<()> {
        for task in self.tasks {
            task.abort();
            match task.await {
                Err(error) if !error.is_cancelled() => {
                    return Err(error).context("whoever looks on");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Phase {
    fn line(&self, memory: Option<u64>, seen: &Seen) -> String {
        let slowest = seen.health_ns.iter().max().copied().unwrap_or(0) as f64 / 1e6;
        format!(
            "{} {} of {} in {:.0} s: {} whole generations, {} faulty, {} health checks ({} failed, slowest {slowest:.1} ms), {} MiB",
            self.name,
            self.done,
            self.total,
            self.begun.elapsed().as_secs_f64(),
            self.generated,
            self.faulty,
            seen.health_ns.len(),
            seen.unhealthy,
            memory.map_or("?".to_owned(), |kib| (kib / 1024).to_string()),
        )
    }
}

/// Memory of this process, in KiB; none where there is no /proc.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
