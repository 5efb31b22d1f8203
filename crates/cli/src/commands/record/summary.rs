//! Prints the summary of a recording on standard error.

use crate::output::{command_line, say};
use nodewise_observe::{Emulator, PlainRun, Recorded};
use nodewise_profile::{Meta, ObjectKind, Observer, Profile, Thread};
use nodewise_report::{amount, count, pages, percent, plural, seconds, whole_percent};
use nodewise_simulation::measured_cost;
use std::path::Path;
use std::time::Duration;

/// Exit statuses of programs killed by SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE or SIGSEGV.
const CRASH_STATUSES: [u8; 6] = [132, 133, 134, 135, 136, 139];

/// Prints the summary of a program that counted its accesses.
///
/// `roles` is a sentence on the results of repetitions.
pub fn recorded(folder: &Path, recorded: &Recorded, emulator: Option<&Emulator>, roles: Option<&str>) {
    let profile = &recorded.profile;
    if !recorded.any_announced {
        say!(
            "nothing was recorded: {}, or it could not write to {}",
            match emulator {
                Some(_) => "no program ran that loads libraries",
                None => "no program built with nodewise-cc ran",
            },
            folder.display()
        );
        return;
    }
    say!(
        "{} by {} to {} of {}, in {}{}",
        amount(recorded.accesses, "access"),
        plural(Thread::count(&profile.threads), "thread"),
        pages(touched_pages(profile)),
        plural(placeable(profile), "object"),
        plural(profile.slices.len(), "slice"),
        if recorded.processes > 1 {
            format!(", {} processes", recorded.processes)
        } else {
            String::new()
        },
    );
    match emulator {
        Some(emulator) => say!(
            "emulated by QEMU {}: all code was counted, libraries too, but not the stack by its pointer",
            emulator.version()
        ),
        None => say!("{}", coverage(&profile.meta, recorded.sampled)),
    }
    say!("{}", time(recorded));
    if let Some(plain) = &recorded.plain {
        say!("{}", compared(plain, recorded));
    }
    if let Some(roles) = roles {
        say!("{roles}");
    }
    if recorded.dropped > 0 {
        say!(
            "not counted: {} in signal handlers",
            amount(recorded.dropped, "access")
        );
    }
    if !recorded.uncounted.is_empty() {
        say!(
            "not counted, as privileged, for another processor or C library, or with a sanitizer: {}",
            recorded.uncounted.join(", ")
        );
    }
    if let Some(emulator) = emulator.filter(|_| CRASH_STATUSES.contains(&recorded.status)) {
        say!(
            "ended by signal {} under QEMU {}, which may be at fault, as it is with zsh, ruby and forks of programs of \
             several threads: if so, plain `qemu-x86_64 PROGRAM` ends like this, and PROGRAM alone does not",
            recorded.status - 128,
            emulator.version()
        );
    }
    cut_short(profile);
    where_and_next(folder);
}

fn cut_short(profile: &Profile) {
    if let Some(why) = &profile.meta.truncated {
        say!("the profile is cut short: {why}");
    }
}

/// Prints the summary of a sampled recording.
pub fn sampled(folder: &Path, recorded: &nodewise_observe::faults::Recorded, minimum: u32) {
    let (profile, figures) = (&recorded.profile, &recorded.figures);
    say!(
        "{} of pages by {}, {} and {} apart, in {}{}",
        amount(figures.hints, "sample"),
        plural(Thread::count(&profile.threads), "thread"),
        amount(figures.firsts, "first touch"),
        amount(figures.copies, "copy"),
        plural(profile.slices.len(), "slice"),
        match recorded.processes {
            0 | 1 => String::new(),
            several => format!(", {several} processes"),
        },
    );
    say!(
        "samples say who uses a page, not how often; a page is judged from {} on; {}",
        plural(minimum as usize, "sample"),
        match figures.writes {
            true => "reads and writes are told apart",
            false => "reads and writes are not told apart (root, with tracefs mounted, would)",
        }
    );
    say!(
        "it took {} of the program's CPU time ({}{} a sample; one fault of {} was reported at the end), {} lost",
        percent(figures.cost),
        match recorded.reading {
            little if little < Duration::from_millis(10) => String::new(),
            reading => format!(
                "and {} of CPU time for reading symbols, once; ",
                seconds(reading.as_secs_f64())
            ),
        },
        seconds(figures.sample_ns / 1e9),
        figures.period,
        count(figures.lost),
    );
    if let Some(aside) = figures.aside {
        say!("{aside}");
    }
    match figures.kernel_moved {
        Some(0) => {}
        Some(moved) => say!("meanwhile the kernel moved {} by itself", pages(moved)),
        None => say!("what the kernel moved meanwhile, it does not say"),
    }
    if figures.missed_threads > 0 {
        say!(
            "{} not watched, for want of descriptors; ulimit -n 65536",
            plural(figures.missed_threads, "thread")
        );
    }
    if figures.hints == 0 {
        say!("{}", no_samples(profile, figures.aside.is_some()));
    }
    cut_short(profile);
    where_and_next(folder);
}

/// The reason why there are no samples: the kernel first scans a program after about a second, and it does not sample
/// pages on the node of a program's only thread.
fn no_samples(profile: &Profile, set_aside: bool) -> &'static str {
    if set_aside {
        return "no samples: nothing that was set aside was accessed meanwhile; run longer, or raise --observe-budget";
    }
    match (profile.meta.host_nodes, Thread::count(&profile.threads)) {
        (1, 0 | 1) => {
            "no samples: the program has one thread on one node, and the kernel samples no page that lies where its only thread runs"
        }
        _ => {
            "no samples: the kernel looks at a program first after about a second; run longer, or see --scan-period"
        }
    }
}

/// Prints the summary of a recovered recording.
pub fn recovered(folder: &Path, recovered: &nodewise_observe::Recovered) {
    let profile = &recovered.profile;
    say!(
        "recovered {} by {}",
        pages(touched_pages(profile)),
        plural(Thread::count(&profile.threads), "thread")
    );
    if let Some(why) = &recovered.unread {
        say!(
            "the profile is not complete, and {} is kept: {why}",
            folder.join("raw").display()
        );
    }
    where_and_next(folder);
}

fn where_and_next(folder: &Path) {
    let next = command_line("nodewise report", folder);
    say!("profile in {}; next: {next}", folder.display());
}

/// The run time, and how much of it is known to be our cost.
fn time(recorded: &Recorded) -> String {
    let took = format!(
        "the recorded run took {}",
        seconds(recorded.profile.meta.wall_ns as f64 / 1e9)
    );
    match recorded.profile.meta.coverage.counting_share() {
        Some(share) => format!(
            "{took}; {} of its CPU time in user mode went into counting",
            whole_percent(share)
        ),
        None => took,
    }
}

/// A sentence that compares the times of the plain and the recorded run.
fn compared(plain: &PlainRun, recorded: &Recorded) -> String {
    if let Some(why) = &plain.unusable {
        return format!("the time of the plain build is not used: {why}");
    }
    let meta = &recorded.profile.meta;
    let cpu: u64 = recorded.profile.threads.iter().map(|t| t.cpu_ns).sum();
    let busy = cpu as f64 * (1.0 - meta.coverage.waiting);
    match meta.plain_cpu_ns {
        Some(plain) if busy > 0.0 && meta.observer == Observer::Instrument => slowed(busy, plain as f64),
        Some(plain) => format!("the plain build took {} of CPU time", seconds(plain as f64 / 1e9)),
        None if plain.sampled => format!(
            "the time of the plain build is not used: {} are too short to compare",
            seconds(plain.wall_ns as f64 / 1e9)
        ),
        None => "the time of the plain build is not used: CPU time cannot be sampled here".to_owned(),
    }
}

/// What the CPU times of the recorded and the plain run, nanoseconds, say about the cost of recording.
fn slowed(busy: f64, plain: f64) -> String {
    let (took, recorded) = (seconds(plain / 1e9), seconds(busy / 1e9));
    match measured_cost(busy, plain) {
        None => format!(
            "the time of the plain build is not used: it took {took} of CPU time, the recorded run {recorded}, and recording \
             speeds nothing up: something else slowed one of them; record again when the machine is quiet"
        ),
        Some(_) if busy <= plain => {
            format!("the plain build took {took} of CPU time: recording did not slow the program measurably")
        }
        Some(cost) => format!(
            "the plain build took {took} of CPU time: recording slowed the program {:.2} times",
            cost.typical
        ),
    }
}

fn coverage(meta: &Meta, sampled: bool) -> String {
    let coverage = &meta.coverage;
    if !sampled {
        return "coverage unknown: sampling is not permitted; sysctl kernel.perf_event_paranoid=2".to_owned();
    }
    if coverage.share().is_none() {
        return format!(
            "coverage unknown: the run was too short to sample ({} of its own code)",
            seconds(coverage.own_samples() / 1e3)
        );
    }
    nodewise_report::text::coverage(&nodewise_report::recorded_coverage(meta))
}

fn touched_pages(profile: &Profile) -> u64 {
    profile.first_touches.iter().map(|t| u64::from(t.len)).sum()
}

/// Number of objects that a placement can apply to.
fn placeable(profile: &Profile) -> usize {
    let placeable = |k: ObjectKind| !k.is_private() && k != ObjectKind::Unknown;
    profile.objects.iter().filter(|o| placeable(o.kind)).count()
}
