//! What was moved, when and why, line by line and as a profile.

use super::Arguments;
use super::processes::Processes;
use super::report::Report;
use nodewise_control::{Fate, Interval};
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_machine::{NodeId, format_bytes};
use nodewise_observe::faults::Watch;
use nodewise_placement::Move;
use nodewise_profile::{BASE_PAGE_SHIFT, PageNumber};
use std::collections::HashMap;

/// The record of a session.
pub struct Journal {
    page_shift: u32,
    /// Every run of pages gets a line.
    verbose: bool,
    /// Decisions are the news, not what became of them.
    dry: bool,
}

/// Neighbours with one fate.
#[derive(Debug)]
struct Run<'a> {
    first: &'a Move,
    pages: u64,
}

impl Journal {
    pub fn new(arguments: &Arguments, page_shift: u32, dry: bool) -> Self {
        Self {
            page_shift,
            verbose: arguments.verbose,
            dry,
        }
    }

    pub fn heard(&mut self, _watch: &Watch) {}

    /// The kernel moved a page by itself.
    pub fn kernel_moved(&mut self, _page: PageNumber, _from: NodeId, _to: NodeId) {}

    /// What an interval decided and did.
    pub fn decided(&mut self, seconds: f64, turn: &Interval, processes: &Processes) {
        let told = |i: &usize| self.dry || turn.outcome.fate(*i) == Fate::Moved;
        let moves = &turn.decision.moves;
        let told: Vec<&Move> = (0..moves.len()).filter(told).map(|i| &moves[i]).collect();
        if told.is_empty() {
            return;
        }
        let verb = if self.dry { "would move" } else { "moved" };
        let runs = runs(&told, self.page_shift);
        if !self.verbose {
            let (pages, bytes) = (told.len(), format_bytes(self.bytes(told.len() as u64)));
            eprintln!("nodewise: {seconds:.1} s: {verb} {pages} pages ({bytes}) in {} runs", runs.len());
            return;
        }
        let mut names = Names::default();
        for run in runs {
            let name = names.of(processes, run.first.page);
            eprintln!("nodewise: {}", self.line(seconds, verb, &run, &name));
        }
    }

    fn bytes(&self, pages: u64) -> u64 {
        pages << (BASE_PAGE_SHIFT + self.page_shift)
    }

    /// `12.3 s: moved 7f12a000 (mapping 7f120000, 64 MiB) 512 KiB, node 0 to 1: 9 samples to 2, over 4`.
    fn line(&self, seconds: f64, verb: &str, run: &Run<'_>, name: &str) -> String {
        let (each, reason) = (run.first, run.first.reason);
        let home = reason.home_count.map_or_else(|| "unseen".into(), |c| format!("{c:.0}"));
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

    pub fn finish(self, _report: &Report) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Consecutive pages between the same nodes; moves ascend by page. The first one's reason stands for all.
fn runs<'a>(moves: &[&'a Move], page_shift: u32) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for each in moves {
        match runs.last_mut() {
            Some(run)
                if run.first.page.offset(run.pages << page_shift) == each.page
                    && (run.first.from, run.first.to) == (each.from, each.to) =>
            {
                run.pages += 1;
            }
            _ => runs.push(Run { first: each, pages: 1 }),
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
            pid.and_then(|pid| Host::default().maps(pid).ok()).unwrap_or_default()
        });
        let address = page.virtual_number() << BASE_PAGE_SHIFT;
        let area = areas.iter().find(|a| (a.start..a.end).contains(&address));
        area.map_or_else(|| "unmapped".to_owned(), name)
    }
}

fn name(area: &Area) -> String {
    let file = area.name.rsplit('/').next().unwrap_or_default();
    match file.trim_matches(['[', ']']) {
        "" => format!("mapping {:x}, {}", area.start, format_bytes(area.end - area.start)),
        named => named.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_placement::Reason;

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
            name: name.into(),
        };
        assert_eq!(super::name(&area("[heap]")), "heap");
        assert_eq!(super::name(&area("/lib/libm.so.6")), "libm.so.6");
        assert!(super::name(&area("")).starts_with("mapping 1000, 8"));
    }
}
