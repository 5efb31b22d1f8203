//! What is written on the command line, read.

use super::Arguments;
use crate::threads::Threads;
use anyhow::bail;
use nodewise_enforce::Binding;
use nodewise_linux::Host;
use nodewise_live::{ASYM, Options, Target, Topology};
use std::time::Duration;

/// `off`: they stay where they are; else as [`crate::threads`] has it.
pub fn threads(text: &str) -> Result<Threads, String> {
    match text {
        "off" => Ok(Threads::default()),
        _ => crate::threads::threads(text).map_err(|e| format!("off; or {e}")),
    }
}

/// Threads of what runs already have no number and no first place to be given.
pub fn check_threads(arguments: &Arguments) -> anyhow::Result<()> {
    let live = Threads {
        count: None,
        policy: Some(ASYM.to_owned()),
    };
    let of_a_start = arguments.threads != Threads::default() && arguments.threads != live;
    if of_a_start && arguments.command.is_empty() {
        bail!(
            "--threads: a number or a binding is for a command to start with; for running processes: off, asym"
        );
    }
    Ok(())
}

/// Whom to balance.
pub fn target(arguments: &Arguments) -> anyhow::Result<Target> {
    match (
        &arguments.cgroup,
        arguments.pid.as_slice(),
        arguments.command.as_slice(),
    ) {
        (Some(path), _, _) => Ok(Target::group(path)?),
        (None, [], []) => {
            bail!("balance what? --pid N, --cgroup PATH or -- CMD; see nodewise balance --help")
        }
        (None, [], words) => Ok(Target::Command(words.to_vec())),
        (None, pids, _) => Ok(Target::Processes(pids.to_vec())),
    }
}

/// What the live loop is asked.
pub fn options(arguments: &Arguments) -> Options {
    Options {
        policy: arguments.policy.clone(),
        interval: arguments.interval,
        budget: arguments.budget,
        observe: arguments.observe,
        rate_limit: arguments.rate_limit,
        minimum_samples: arguments.samples,
        page_shift: arguments.page_size,
        scan_period: arguments.scan_period,
        freeze: arguments.freeze,
        dry_run: arguments.dry_run,
        move_threads: arguments.threads.policy.as_deref() == Some(ASYM),
        bound: arguments.bind != Binding::None,
        restore: arguments.restore,
    }
}

/// Makes up so many nodes, on which nothing is moved.
const PRETEND: &str = "NODEWISE_PRETEND_NODES";

/// The nodes here, as they are linked.
pub fn topology(arguments: &Arguments) -> anyhow::Result<Topology> {
    let pretend = std::env::var(PRETEND).ok().and_then(|n| n.parse().ok());
    Ok(Topology::this(
        &Host::default(),
        arguments.machine.as_deref(),
        pretend,
    )?)
}

/// Nothing is begun that would end in a refusal.
pub fn check_files(arguments: &Arguments) -> anyhow::Result<()> {
    let files = [&arguments.report, &arguments.objects];
    match files.into_iter().flatten().find(|f| f.exists()) {
        Some(file) if !arguments.force => bail!("{} exists; --force replaces it", file.display()),
        _ => Ok(()),
    }
}

/// `200ms`, `1s`, `1.5s`, `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let of = |(unit, seconds): &(&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * seconds)
    };
    let seconds = units.iter().find_map(of).filter(|s| (0.01..=3600.0).contains(s));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is no time from 10ms to 60m, such as 200ms or 1s"))
}

/// `5%` or `0.05`.
pub fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    let share = number.ok().filter(|s| (0.0..=1.0).contains(s));
    share.ok_or_else(|| format!("`{text}` is no share, such as 5%"))
}

/// log2 of base pages.
pub fn page_shift(text: &str) -> Result<u32, String> {
    match nodewise_machine::parse_bytes(text) {
        Some(4096) => Ok(0),
        Some(0x20_0000) => Ok(9),
        _ => Err(format!("`{text}` is neither 4K nor 2M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_are_read_as_people_write_them() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.5"), Ok(0.5));
        for bad in ["", "1", "s", "-1s", "1h", "NaNs", "0s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "%", "101%", "NaN", "-1%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
