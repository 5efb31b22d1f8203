//! A booted guest, followed to its end.

use crate::{Lab, LabError, Outcome};

/// What happens, as it happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// The guest is up and calibrated; host seconds since QEMU started.
    Ready {
        /// Host seconds.
        seconds: f64,
    },
    /// A run starts, by its place in [`crate::Experiment::runs`].
    Begins {
        /// Which.
        run: usize,
    },
    /// The command's standard output.
    Output(&'a [u8]),
    /// The command's standard error.
    Errors(&'a [u8]),
    /// A run ended.
    Ends {
        /// Which.
        run: usize,
    },
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// One a run, in order.
    pub outcomes: Vec<Outcome>,
    /// From QEMU's start to the first user instruction in the guest, host seconds.
    pub boot_seconds: f64,
    /// Files of the guest's sysfs, by their paths below `/sys`.
    pub capture: Vec<(String, Vec<u8>)>,
    /// The emulator's version.
    pub qemu: String,
    /// The kernel's version.
    pub kernel: String,
}

impl Lab {
    /// Boots, runs, ends. QEMU does not outlive this call, nor this process, nor this thread.
    ///
    /// # Errors
    /// QEMU does not start, the kernel does not come up, the guest breaks, or time runs out.
    pub fn run(self, on: &mut dyn FnMut(Event<'_>)) -> Result<Session, LabError> {
        let _ = (self, on);
        Err(LabError::own("the laboratory does not boot yet"))
    }
}
