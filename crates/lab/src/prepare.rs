//! From what is asked to a guest that can be booted.

use crate::{Experiment, LabError, Setup, Virtual};

/// Everything a boot needs.
#[derive(Debug)]
pub struct Lab {}

/// Finds the kernel and QEMU, packs the image, and checks all that needs no boot.
///
/// # Errors
/// One line with the mend: what is missing here, or why the command cannot run in the guest.
pub fn prepare(machine: &Virtual, experiment: &Experiment, setup: &Setup) -> Result<Lab, LabError> {
    let _ = (machine, experiment, setup);
    Ok(Lab {})
}
