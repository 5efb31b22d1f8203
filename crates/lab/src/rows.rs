//! Rows that the counter plug-in writes; the mirror of `runtime/emulator/rows.h`.

use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;

/// Row kinds of the counter plug-in, `enum nw_row_kind`.
pub(crate) const NODE: u32 = 1;
pub(crate) const CPU: u32 = 2;
pub(crate) const BEGIN: u32 = 3;
pub(crate) const PAGE: u32 = 4;
pub(crate) const END: u32 = 5;
pub(crate) const RUN: u32 = 6;
pub(crate) const SLICE: u32 = 7;

/// A row of the counter plug-in, `struct nw_row`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Row {
    pub kind: u32,
    pub vcpu: u32,
    pub number: u64,
    pub page: u64,
    pub frame: u64,
    pub reads: u64,
    pub writes: u64,
    pub seen: u64,
}

/// Accesses to a page by one virtual CPU on one frame, between a begin and an end row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedPage {
    pub vcpu: u32,
    pub page: u64,
    pub frame: u64,
    pub accesses: u64,
    /// Position of the last access in an order over all accesses.
    pub last: u64,
}

/// The counts of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    begins: u32,
    ends: u32,
    /// Page rows after the last end or slice row.
    unassigned: Vec<CountedPage>,
    pages: Vec<CountedPage>,
    /// The counts of each slice, in order.
    slices: Vec<Vec<CountedPage>>,
}

impl RunCounts {
    /// The run's pages if it began and ended exactly once; otherwise counts would be incomplete or doubled.
    pub fn pages(&self) -> Option<&[CountedPage]> {
        ((self.begins, self.ends) == (1, 1)).then_some(&self.pages)
    }

    /// The counts of each slice, in order. Counts after the last slice are in none.
    pub fn slices(&self) -> &[Vec<CountedPage>] {
        &self.slices
    }
}

/// All rows received so far, by kind.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    partial_row: Vec<u8>,
    /// Node and frame of each marked page, in the order in which pages were marked.
    pub nodes: Vec<(u32, u64)>,
    /// The kernel's number of each virtual CPU.
    pub cpus: Vec<(u32, u32)>,
    /// The announced runs, by number.
    pub runs: BTreeMap<u64, RunCounts>,
    /// Number of the run announced last.
    run: u64,
    /// Number of rows that cannot be interpreted.
    pub damaged: u64,
}

impl Rows {
    /// Takes the next bytes of the stream, which may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        const SIZE: usize = size_of::<Row>();
        let mut bytes = bytes;
        if !self.partial_row.is_empty() {
            let missing = (SIZE - self.partial_row.len()).min(bytes.len());
            self.partial_row.extend(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.partial_row.len() < SIZE {
                return;
            }
            let row = bytemuck::pod_read_unaligned(&self.partial_row);
            self.partial_row.clear();
            self.take(&row);
        }
        let (whole, partial_row) = bytes.as_chunks::<SIZE>();
        for row in whole {
            self.take(&bytemuck::pod_read_unaligned(row));
        }
        self.partial_row.extend(partial_row);
    }

    fn take(&mut self, row: &Row) {
        if row.kind == RUN {
            self.run = row.number;
            self.runs.entry(row.number).or_default();
        }
        match (row.kind, self.runs.get_mut(&self.run)) {
            (NODE, _) => self.nodes.push((row.number as u32, row.frame)),
            (CPU, _) => self.cpus.push((row.vcpu, row.number as u32)),
            (RUN, _) => {}
            (BEGIN, Some(run)) => run.begins += 1,
            (PAGE, Some(run)) => run.unassigned.push(CountedPage {
                vcpu: row.vcpu,
                page: row.page,
                frame: row.frame,
                accesses: row.reads.saturating_add(row.writes),
                last: row.seen,
            }),
            (END, Some(run)) => {
                run.ends += 1;
                run.pages.append(&mut run.unassigned);
            }
            (SLICE, Some(run)) => run.slices.push(std::mem::take(&mut run.unassigned)),
            _ => self.damaged += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares the row kinds and the order of the fields with the C header.
    #[test]
    fn rows_are_as_the_header_says() {
        let header = include_str!("../../../runtime/emulator/rows.h");
        let (_, body) = header.split_once("typedef struct nw_row {").unwrap();
        let (body, _) = body.split_once("} nw_row;").unwrap();
        let fields: Vec<&str> = body
            .lines()
            .filter_map(|l| l.split_once(';'))
            .map(|(f, _)| f.trim())
            .collect();
        assert_eq!(
            fields,
            [
                "uint32_t kind",
                "uint32_t vcpu",
                "uint64_t number",
                "uint64_t page",
                "uint64_t frame",
                "uint64_t reads",
                "uint64_t writes",
                "uint64_t seen"
            ]
        );
        assert_eq!(size_of::<Row>(), 56);
        let kinds: Vec<&str> = header
            .lines()
            .filter_map(|l| l.trim().strip_prefix("NW_ROW_"))
            .map(|l| l.split([',', ' ']).next().unwrap())
            .collect();
        assert_eq!(kinds, ["NODE", "CPU", "BEGIN", "PAGE", "END", "RUN", "SLICE"]);
        assert!(header.contains("NW_ROW_NODE = 1,"));
        assert_eq!([NODE, CPU, BEGIN, PAGE, END, RUN, SLICE], [1, 2, 3, 4, 5, 6, 7]);
    }

    /// The first run is refused, the second cannot be started, the third is counted. In the fourth the command itself
    /// begins and ends a second count.
    #[test]
    fn pages_are_those_of_the_run_that_was_announced() {
        let row = |kind, number, page| Row {
            kind,
            number,
            page,
            ..Row::default()
        };
        let (run, begin, page, end) = (
            |n| row(RUN, n, 0),
            row(BEGIN, 9, 0),
            |p| row(PAGE, 0, p),
            row(END, 9, 0),
        );
        let rows_sent = [
            run(0),
            run(1),
            begin,
            run(2),
            begin,
            page(7),
            page(8),
            end,
            run(3),
            begin,
            begin,
            page(1),
            end,
            page(1),
            end,
        ];
        let mut rows = Rows::default();
        rows.feed(bytemuck::cast_slice(&rows_sent));
        let pages = |run: u64| {
            rows.runs[&run]
                .pages()
                .map(|all| all.iter().map(|s| s.page).collect())
        };
        assert_eq!([0, 1, 2, 3].map(pages), [None, None, Some(vec![7, 8]), None]);
        assert_eq!((rows.runs.len(), rows.damaged), (4, 0));
    }

    #[test]
    fn slices_are_apart_from_the_whole() {
        let row = |kind, page| Row {
            kind,
            page,
            ..Row::default()
        };
        let rows_sent = [
            row(RUN, 0),
            row(SLICE, 0),
            row(BEGIN, 0),
            row(PAGE, 7),
            row(SLICE, 1),
            row(PAGE, 7),
            row(PAGE, 8),
            row(END, 0),
        ];
        let mut rows = Rows::default();
        rows.feed(bytemuck::cast_slice(&rows_sent));
        let numbers = |all: &[CountedPage]| all.iter().map(|s| s.page).collect::<Vec<_>>();
        let run = &rows.runs[&0];
        assert_eq!(run.pages().map(numbers), Some(vec![7, 8]));
        assert_eq!(
            run.slices().iter().map(|s| numbers(s)).collect::<Vec<_>>(),
            [vec![], vec![7]]
        );
    }

    proptest! {
        #[test]
        fn a_stream_cut_anywhere_is_the_same(
            kinds in proptest::collection::vec(0u32..9, 0..20), cuts in proptest::collection::vec(0usize..1200, 0..6),
        ) {
            let rows: Vec<Row> = kinds.iter().zip(1..).map(|(kind, at)| Row { kind: *kind, page: at, number: at, ..Row::default() }).collect();
            let bytes: &[u8] = bytemuck::cast_slice(&rows);
            let mut whole = Rows::default();
            whole.feed(bytes);
            let mut pieces = Rows::default();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                pieces.feed(&bytes[pair[0]..pair[1]]);
            }
            prop_assert_eq!(&whole.runs, &pieces.runs);
            prop_assert_eq!((whole.nodes.len(), whole.damaged), (pieces.nodes.len(), pieces.damaged));
        }
    }
}
