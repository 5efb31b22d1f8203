//! Times one run of the uninstrumented (plain) build, so that the overhead of recording is known exactly, not just
//! bounded.

use crate::alive::CHECK_INTERVAL;
use crate::code::Library;
use crate::coverage::{SAMPLES_PER_SECOND, Samples};
use crate::error::{Error, cannot_start};
use nodewise_linux::child::{Forwarding, cpu_of_ended, shell_status};
use nodewise_linux::clock::nanoseconds;
use nodewise_linux::perf::Sampler;
use nodewise_loader::RUNTIME;
use nodewise_profile::Coverage;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times of one run of the plain build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainRun {
    /// CPU time of the program's own work by the kernel's account, without waiting in the threading runtime, whose share is
    /// sampled like that of the recorded run; nanoseconds. `None` if CPU time may not be sampled, or the run was too short.
    pub cpu_ns: Option<u64>,
    /// Wall time of the run, nanoseconds.
    pub wall_ns: u64,
    /// Whether CPU time could be sampled.
    pub sampled: bool,
    /// Why the run cannot be compared with the recorded run, if so.
    pub unusable: Option<String>,
}

/// Makes a further run of a command read standard input from the start if it is a file, else nothing, and write
/// nothing.
pub fn without_output(command: &mut Command) {
    let input = std::fs::metadata("/proc/self/fd/0").is_ok_and(|m| m.is_file());
    let input = input.then(|| File::open("/proc/self/fd/0").ok()).flatten();
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    command.stdout(Stdio::null()).stderr(Stdio::null());
}

/// Runs the plain build once, without output, after a recorded run that ended with status 0. Standard input is read
/// from the start if it is a file, and is empty otherwise. Calls `look` repeatedly.
///
/// # Errors
/// It cannot be started.
pub fn time_plain(command: &mut Command, mut look: impl FnMut(Duration)) -> Result<PlainRun, Error> {
    without_output(command);
    let mut sampler = Sampler::of_children(SAMPLES_PER_SECOND).ok();
    let (mut samples, mut library) = (Samples::default(), Library::default());
    let (start, before) = (Instant::now(), cpu_of_ended());
    let child = Forwarding::start(command).map_err(|e| cannot_start(command, &e))?;
    let status = child.wait(CHECK_INTERVAL, |_| {
        if let Some(sampler) = &mut sampler {
            samples.take(sampler, &mut library);
        }
        look(start.elapsed());
        CHECK_INTERVAL
    });
    let wall_ns = nanoseconds(start.elapsed());
    let status = shell_status(status.map_err(|e| cannot_start(command, &e))?);
    let used = cpu_of_ended().since(before);
    if let Some(sampler) = &mut sampler {
        samples.take(sampler, &mut library);
    }
    samples.end(used);
    let coverage = samples.coverage(&mut library);
    Ok(PlainRun {
        cpu_ns: sampler
            .is_some()
            .then(|| own_ns(&coverage, samples.total_ns()))
            .filter(|_| coverage.own_samples() >= Coverage::FEW),
        wall_ns,
        sampled: sampler.is_some(),
        unusable: match status {
            0 if library.has(RUNTIME) => {
                Some("it counts its accesses, or starts a program that does".to_owned())
            }
            0 => None,
            status => Some(format!("it ended with status {status}")),
        },
    })
}

/// Whether standard input is a pipe or a socket, which only one of two runs can read.
#[must_use]
pub fn input_is_consumed() -> bool {
    std::fs::metadata("/proc/self/fd/0").is_ok_and(|m| m.file_type().is_fifo() || m.file_type().is_socket())
}

/// CPU time without waiting in the threading runtime, nanoseconds.
fn own_ns(coverage: &Coverage, total_ns: u64) -> u64 {
    (total_ns as f64 * (1.0 - coverage.waiting)) as u64
}
