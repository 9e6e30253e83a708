//! The clocks of measurements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The clock that the command line selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockChoice {
    /// The wall clock.
    Wall,
    /// The smaller of the wall clock and the thread's processor time, so that time given to other
    /// programs does not count. Waiting for other threads would not count either, so no engine may
    /// have its own threads.
    Own,
}

static OWN: AtomicBool = AtomicBool::new(false);

/// Sets the clock of the whole program.
pub(crate) fn choose(choice: ClockChoice) {
    OWN.store(choice == ClockChoice::Own, Ordering::Relaxed);
}

/// A running measurement.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    own: Option<Timespec>,
    wall: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let own = OWN.load(Ordering::Relaxed).then(own);
        Clock { own, wall: Instant::now() }
    }

    /// Nanoseconds since the start.
    pub(crate) fn nanos(self) -> u64 {
        let wall = self.wall.elapsed();
        let time = match self.own {
            Some(begin) => wall.min(between(begin, own())),
            None => wall,
        };
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn own() -> Timespec {
    clock_gettime(ClockId::ThreadCPUTime)
}

fn between(begin: Timespec, end: Timespec) -> Duration {
    let nanos = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Duration::from_nanos(u64::try_from(nanos(end) - nanos(begin)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_counts_on_the_wall_only() {
        let clock = Clock { own: Some(own()), wall: Instant::now() };
        std::thread::sleep(Duration::from_millis(50));
        assert!(clock.nanos() < 40_000_000);
        let wall = Clock { own: None, ..clock };
        assert!(wall.nanos() >= 50_000_000);
    }
}
