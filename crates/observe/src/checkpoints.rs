//! How often a recording makes what it has so far readable.

use nodewise_linux::clock;
use std::time::Duration;

/// Checkpoints take at most a fiftieth of a CPU. This counts their CPU time, not wall time: waiting for a busy CPU
/// would otherwise delay the next one by minutes, and the live page would show old figures.
pub(crate) const SHARE: u32 = 50;

/// When the next checkpoint may be written.
pub(crate) struct Checkpoints {
    /// By the monotonic clock.
    pub due: Duration,
    /// The least pause by the wall time that the last one took.
    pause: u32,
}

/// Clocks at the beginning of a checkpoint.
pub(crate) struct Begun {
    wall: Duration,
    cpu: Duration,
}

impl Checkpoints {
    /// The first is due at once. `pause`: the least time between two, as a multiple of the wall time that the first of them took.
    pub fn new(pause: u32) -> Self {
        Self {
            due: Duration::ZERO,
            pause,
        }
    }

    /// Begins one, if it is due.
    pub fn begin(&self) -> Option<Begun> {
        let wall = clock::monotonic();
        (wall >= self.due).then(|| Begun {
            wall,
            cpu: clock::own_cpu_time(),
        })
    }

    /// Ends one that was written.
    pub fn end(&mut self, begun: &Begun) {
        let (now, cpu) = (clock::monotonic(), clock::own_cpu_time() - begun.cpu);
        self.due = now + (cpu * SHARE).max((now - begun.wall) * self.pause);
    }
}
