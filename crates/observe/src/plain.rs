//! Times one run of the plain build: what recording cost is then known, instead of bounded.

use crate::LOOK;
use crate::code::Library;
use crate::coverage::{FREQUENCY, Samples};
use crate::error::{Error, cannot_start};
use nodewise_linux::child::{Forwarding, cpu_of_ended, shell_status};
use nodewise_linux::clock::nanoseconds;
use nodewise_linux::perf::Sampler;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times of one run of the plain build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainRun {
    /// CPU time of its own work, waiting in the threading runtime apart, nanoseconds; `None` where CPU time may not be
    /// sampled: the recorded run's is not known either then.
    pub cpu_ns: Option<u64>,
    /// Wall time of the run, nanoseconds.
    pub wall_ns: u64,
    /// Exit status, in a shell's form.
    pub status: u8,
}

/// Runs the plain build once, without output. Standard input is read anew if it is a file, and empty otherwise. Calls
/// `look` repeatedly. As the recorded run's, its time comes without that in the kernel where that is not sampled.
///
/// # Errors
/// It cannot be started.
pub fn time_plain(mut command: Command, mut look: impl FnMut(Duration)) -> Result<PlainRun, Error> {
    let input = std::fs::metadata("/proc/self/fd/0").is_ok_and(|m| m.is_file());
    let input = input
        .then(|| std::fs::File::open("/proc/self/fd/0").ok())
        .flatten();
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut sampler = Sampler::of_children(FREQUENCY).ok();
    let (mut samples, mut library) = (Samples::default(), Library::default());
    let (before, start) = (cpu_of_ended(), Instant::now());
    let child = Forwarding::start(&mut command).map_err(|e| cannot_start(&command, &e))?;
    let status = child.wait(LOOK, |_| {
        if let Some(sampler) = &mut sampler {
            samples.take(sampler, &mut library);
        }
        look(start.elapsed());
        LOOK
    });
    let wall_ns = nanoseconds(start.elapsed());
    let after = cpu_of_ended();
    let cpu_ns = sampler.map(|mut sampler| {
        samples.take(&mut sampler, &mut library);
        let kernel = if sampler.sees_kernel() {
            after.system - before.system
        } else {
            Duration::ZERO
        };
        let spent = nanoseconds(after.user - before.user + kernel);
        (spent as f64 * (1.0 - samples.coverage(&mut library).waiting)) as u64
    });
    Ok(PlainRun {
        cpu_ns,
        wall_ns,
        status: shell_status(status.map_err(|e| cannot_start(&command, &e))?),
    })
}
