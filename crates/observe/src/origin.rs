//! Metadata of a profile on its host and command.

use nodewise_linux::Host;
use nodewise_profile::Meta;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Metadata of a recording that starts now on this host.
#[must_use]
pub fn host_meta(host: &Host) -> Meta {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let nodes = host.names("sys/devices/system/node").unwrap_or_default();
    let is_node = |n: &&String| n.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    Meta {
        started_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs()),
        host_cpus: cpus as u32,
        host_nodes: nodes.iter().filter(is_node).count().max(1) as u32,
        host_model: host.cpu_model(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Meta::default()
    }
}

/// The command line of a running process, as far as the kernel shows it; empty if the process has ended.
#[must_use]
pub fn command_of(host: &Host, pid: u32) -> Vec<String> {
    let text = host.read(&format!("proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    match words.first() {
        Some(shown) if shown.contains(' ') && !Path::new(shown).exists() => title_words(shown),
        _ => words,
    }
}

/// The words of a title that a server shows in place of its command line; the first word loses a colon at its end.
fn title_words(shown: &str) -> Vec<String> {
    let mut words: Vec<String> = shown.split_whitespace().map(str::to_owned).collect();
    if let Some(name) = words.first_mut() {
        *name = name.trim_end_matches(':').to_owned();
    }
    words
}
