//! Reports a session on standard error, while it runs and at its end.

use crate::output::{self, say};
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_live::{Decided, Event, Run, Subscriber, ThreadsMoved};
use nodewise_observe::faults::Watch;
use nodewise_profile::{BASE_PAGE_SHIFT, PageNumber};
use nodewise_report::{bytes, plural};
use std::collections::HashMap;
use std::time::Duration;

/// A subscriber that prints lines on standard error.
pub struct Terminal {
    /// Whether every run of moved pages gets a line.
    pub verbose: bool,
}

impl Subscriber for Terminal {
    fn receive(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Notice(line) => output::message(line),
            Event::Paused(true) => say!("paused; SIGUSR2 resumes"),
            Event::Paused(false) => say!("resumed"),
            Event::ThreadsMoved(moved) => tell_threads(at, moved),
            Event::Decided(decided) => self.tell_pages(at, decided),
            Event::Ended(status) => status.text().lines().for_each(output::message),
            Event::Sampled(_) | Event::Found(_) | Event::Complete(_) | Event::Updated(_) => {}
        }
        Ok(())
    }
}

impl Terminal {
    fn tell_pages(&self, at: Duration, decided: &Decided<'_>) {
        let runs = decided.runs();
        if runs.is_empty() {
            return;
        }
        let (seconds, shift) = (at.as_secs_f64(), decided.page_shift);
        let verb = if decided.dry { "would move" } else { "moved" };
        if !self.verbose {
            let pages: u64 = runs.iter().map(|r| r.pages).sum();
            say!(
                "{seconds:.1} s: {verb} {} ({}) in {}",
                plural(pages as usize, "page"),
                size(pages, shift),
                plural(runs.len(), "run")
            );
            return;
        }
        let mut names = Names::default();
        for run in &runs {
            let name = names.of(decided.watch, run.first.page);
            say!("{seconds:.1} s: {verb} {}", line(run, &name, shift));
        }
    }
}

fn tell_threads(at: Duration, moved: &ThreadsMoved) {
    let gain = moved.gain;
    let would = if moved.dry { "would " } else { "" };
    let done = match moved.from == moved.to {
        true => format!("stay on nodes {}", moved.to),
        false => format!("move from nodes {} to {}", moved.from, moved.to),
    };
    say!(
        "{:.1} s: threads of process {} ({}) {would}{done}; {gain}",
        at.as_secs_f64(),
        moved.pid,
        moved.name,
    );
}

fn size(pages: u64, page_shift: u32) -> String {
    bytes(pages << (BASE_PAGE_SHIFT + page_shift))
}

/// Describes a moved run: `7f12a000 (mapping 7f120000, 64 MiB) 512 KiB, node 0 to 1: 9 samples to 2, needed more than
/// 4.0`.
fn line(run: &Run<'_>, name: &str, page_shift: u32) -> String {
    let (each, reason) = (run.first, run.first.reason);
    let home = reason
        .home_count
        .map_or_else(|| "unseen".into(), |c| format!("{c:.0}"));
    format!(
        "{:x} ({name}) {}, node {} to {}: {:.0} samples to {home}, needed more than {:.1}",
        each.page.virtual_number() << BASE_PAGE_SHIFT,
        size(run.pages, page_shift),
        each.from.0,
        each.to.0,
        reason.to_count,
        reason.count_threshold,
    )
}

/// Names of the memory areas of processes, read once an interval.
#[derive(Default)]
struct Names {
    areas: HashMap<u16, Vec<Area>>,
}

impl Names {
    fn of(&mut self, watch: &Watch, page: PageNumber) -> String {
        let process = page.process();
        let areas = self.areas.entry(process).or_insert_with(|| {
            let pid = watch.pid(process);
            pid.and_then(|pid| Host::default().maps(pid).ok())
                .unwrap_or_default()
        });
        let address = page.virtual_number() << BASE_PAGE_SHIFT;
        let area = areas.iter().find(|a| (a.start..a.end).contains(&address));
        area.map_or_else(|| "unmapped".to_owned(), name)
    }
}

fn name(area: &Area) -> String {
    let file = area.name.rsplit('/').next().unwrap_or_default();
    match file.trim_matches(['[', ']']) {
        "" => format!("mapping {:x}, {}", area.start, bytes(area.end - area.start)),
        named => named.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_called_by_its_file_or_where_it_lies() {
        let area = |name: &str| Area {
            start: 0x1000,
            end: 0x3000,
            permissions: "rw-p".into(),
            offset: 0,
            file: (0, 0),
            name: name.into(),
        };
        assert_eq!(super::name(&area("[heap]")), "heap");
        assert_eq!(super::name(&area("/lib/libm.so.6")), "libm.so.6");
        assert!(super::name(&area("")).starts_with("mapping 1000, 8 KiB"));
    }
}
