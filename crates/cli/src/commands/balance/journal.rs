//! What was moved, when and why, line by line and as a profile.

use super::Arguments;
use super::processes::Processes;
use super::recording::{MovedPages, Recording};
use super::report::Report;
use super::target::Target;
use crate::output::say;
use nodewise_control::{Fate, Interval};
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_machine::format_bytes;
use nodewise_observe::faults::Watch;
use nodewise_placement::{Move, Reason};
use nodewise_profile::{BASE_PAGE_SHIFT, Migration, PageNumber};
use std::collections::HashMap;
use std::path::Path;

/// The record of a session.
pub struct Journal {
    page_shift: u32,
    /// Every run of pages gets a line.
    verbose: bool,
    /// Decisions are the news, not what became of them.
    dry: bool,
    recording: Option<Recording>,
}

/// Neighbours with one fate.
#[derive(Debug)]
struct Run<'a> {
    first: &'a Move,
    pages: u64,
}

impl Journal {
    pub fn new(arguments: &Arguments, target: &Target, page_shift: u32, dry: bool) -> anyhow::Result<Self> {
        // A page shows the profile as it is written.
        let unnamed = arguments.page.map(|_| nodewise_store::unused(Path::new("")));
        let folder = arguments.output.clone().or(unnamed);
        let recording = folder.map(|f| Recording::new(arguments, target, &f, page_shift));
        Ok(Self {
            page_shift,
            verbose: arguments.verbose,
            dry,
            recording: recording.transpose()?,
        })
    }

    /// Where the profile goes.
    pub fn folder(&self) -> Option<&Path> {
        self.recording.as_ref().map(Recording::folder)
    }

    /// What the last look saw.
    pub fn heard(&mut self, watch: &Watch) {
        if let Some(recording) = &mut self.recording {
            recording.heard(watch);
        }
    }

    /// A page was found elsewhere, and not by a decision; `by_kernel` if its own balancing has moved some.
    pub fn found_elsewhere(&mut self, now_ns: u64, by_kernel: bool, moved: &MovedPages) {
        let by = if by_kernel {
            Migration::KERNEL
        } else {
            Migration::UNKNOWN
        };
        if let Some(recording) = &mut self.recording {
            recording.moved(now_ns, by, &Reason::default(), moved);
        }
    }

    /// A page was found where a decision had sent it.
    pub fn moved(&mut self, now_ns: u64, policy: &str, reason: &Reason, moved: &MovedPages) {
        if let Some(recording) = &mut self.recording {
            recording.moved(now_ns, policy, reason, moved);
        }
    }

    /// An interval ends.
    pub fn cut(&mut self, now_ns: u64, report: &Report) {
        if let Some(recording) = &mut self.recording
            && let Err(error) = recording.cut(now_ns, report)
        {
            say!("{error}; nothing is recorded from here on");
            self.recording = None;
        }
    }

    /// What an interval decided and did.
    pub fn decided(&mut self, now_ns: u64, policy: &str, turn: &Interval, processes: &Processes) {
        let told = |i: &usize| self.dry || turn.outcome.fate(*i) == Fate::Moved;
        let moves = &turn.decision.moves;
        let told: Vec<&Move> = (0..moves.len()).filter(told).map(|i| &moves[i]).collect();
        if told.is_empty() {
            return;
        }
        let runs = runs(&told, self.page_shift);
        self.tell(now_ns as f64 / 1e9, told.len() as u64, &runs, processes);
        if let Some(recording) = self.recording.as_mut().filter(|_| !self.dry) {
            for run in &runs {
                let Some(pid) = processes.pid(run.first.page.process()) else {
                    continue;
                };
                recording.moved(now_ns, policy, &run.first.reason, &run.moved(pid));
            }
        }
    }

    fn tell(&self, seconds: f64, pages: u64, runs: &[Run<'_>], processes: &Processes) {
        let verb = if self.dry { "would move" } else { "moved" };
        if !self.verbose {
            let bytes = format_bytes(self.bytes(pages));
            say!(
                "{seconds:.1} s: {verb} {pages} pages ({bytes}) in {} runs",
                runs.len()
            );
            return;
        }
        let mut names = Names::default();
        for run in runs {
            let name = names.of(processes, run.first.page);
            say!("{}", self.line(seconds, verb, run, &name));
        }
    }

    fn bytes(&self, pages: u64) -> u64 {
        pages << (BASE_PAGE_SHIFT + self.page_shift)
    }

    /// `12.3 s: moved 7f12a000 (mapping 7f120000, 64 MiB) 512 KiB, node 0 to 1: 9 samples to 2, over 4`.
    fn line(&self, seconds: f64, verb: &str, run: &Run<'_>, name: &str) -> String {
        let (each, reason) = (run.first, run.first.reason);
        let home = reason
            .home_count
            .map_or_else(|| "unseen".into(), |c| format!("{c:.0}"));
        format!(
            "{seconds:.1} s: {verb} {:x} ({name}) {}, node {} to {}: {:.0} samples to {home}, needed more than {:.1}",
            each.page.virtual_number() << BASE_PAGE_SHIFT,
            format_bytes(self.bytes(run.pages)),
            each.from.0,
            each.to.0,
            reason.to_count,
            reason.against,
        )
    }

    pub fn finish(self, now_ns: u64, report: &Report) -> anyhow::Result<()> {
        self.recording.map_or(Ok(()), |r| r.finish(now_ns, report))
    }
}

impl Run<'_> {
    fn moved(&self, pid: u32) -> MovedPages {
        MovedPages {
            pid,
            page: self.first.page,
            count: self.pages,
            from: self.first.from,
            to: self.first.to,
        }
    }
}

/// Consecutive pages between the same nodes for the same reason; moves ascend by page.
fn runs<'a>(moves: &[&'a Move], page_shift: u32) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for each in moves {
        match runs.last_mut() {
            Some(run)
                if run.first.page.offset(run.pages << page_shift) == each.page
                    && (run.first.from, run.first.to) == (each.from, each.to)
                    && run.first.reason == each.reason =>
            {
                run.pages += 1;
            }
            _ => runs.push(Run {
                first: each,
                pages: 1,
            }),
        }
    }
    runs
}

/// What the kernel calls the memory of processes, asked once an interval.
#[derive(Default)]
struct Names {
    areas: HashMap<u16, Vec<Area>>,
}

impl Names {
    fn of(&mut self, processes: &Processes, page: PageNumber) -> String {
        let process = page.process();
        let areas = self.areas.entry(process).or_insert_with(|| {
            let pid = processes.pid(process);
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
        "" => format!(
            "mapping {:x}, {}",
            area.start,
            format_bytes(area.end - area.start)
        ),
        named => named.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    #[test]
    fn neighbours_between_the_same_nodes_share_a_line() {
        let each = |page: u64, to: u32| Move {
            index: 0,
            page: PageNumber(page),
            from: NodeId(0),
            to: NodeId(to),
            reason: Reason::default(),
        };
        let moves = [each(0, 1), each(512, 1), each(1024, 2), each(2048, 2)];
        let runs = runs(&moves.iter().collect::<Vec<_>>(), 9);
        let pages: Vec<u64> = runs.iter().map(|r| r.pages).collect();
        assert_eq!(pages, [2, 1, 1]);
    }

    #[test]
    fn memory_is_called_by_its_file_or_where_it_lies() {
        let area = |name: &str| Area {
            start: 0x1000,
            end: 0x3000,
            permissions: "rw-p".into(),
            offset: 0,
            name: name.into(),
        };
        assert_eq!(super::name(&area("[heap]")), "heap");
        assert_eq!(super::name(&area("/lib/libm.so.6")), "libm.so.6");
        assert!(super::name(&area("")).starts_with("mapping 1000, 8"));
    }
}
