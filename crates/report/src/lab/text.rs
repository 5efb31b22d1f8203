//! Terminal output of the laboratory: the matrix of a single run, or one line for each placement.

use super::matrix::{Shares, short, tiny};
use super::over_time::bars;
use super::{Experiment, LabRun};
use crate::table::{matrix_line, table};
use crate::text::{Screen, wrap};
use crate::{amount, count, noun, pages, percent};
use nodewise_input::escaped;
use std::fmt::Write;

/// Smallest width for which lines are laid out; on a narrower screen the terminal wraps them.
const MIN_WIDTH: usize = 60;

/// The whole text, ending in a newline.
#[must_use]
pub fn write(experiment: &Experiment, screen: Screen) -> String {
    let width = screen.width.max(MIN_WIDTH);
    let writer = Writer {
        experiment,
        screen: Screen { width, ..screen },
    };
    let mut out = String::new();
    writer.faint(&mut out, &experiment.place());
    match experiment.runs() {
        [run] => writer.one(&mut out, run),
        runs => writer.several(&mut out, runs),
    }
    writer.over_time(&mut out);
    writer.notes(&mut out);
    writer.faint(&mut out, &experiment.method());
    out
}

struct Writer<'a> {
    experiment: &'a Experiment,
    screen: Screen,
}

impl Writer<'_> {
    fn paint(&self, code: u32, text: &str) -> String {
        if self.screen.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn line(&self, out: &mut String, text: &str) {
        for line in wrap(&escaped(text), self.screen.width) {
            let _ = writeln!(out, "{line}");
        }
    }

    fn faint(&self, out: &mut String, text: &str) {
        for line in wrap(&escaped(text), self.screen.width) {
            let _ = writeln!(out, "{}", self.paint(2, &line));
        }
    }

    fn one(&self, out: &mut String, run: &LabRun) {
        if let Some(counts) = &run.accesses {
            let shares = Shares::of(counts);
            let head = format!(
                "{}: {}, per cent by node of the CPU (rows) and of the memory (columns)",
                run.name(),
                amount(shares.total, "access")
            );
            self.line(out, &head);
            out.push('\n');
            if shares.total > 0 {
                self.matrix(out, &shares, &run.pages);
                out.push('\n');
            }
            let known = |f: Option<f64>| f.map_or("none".to_owned(), percent);
            let metrics = format!(
                "local fraction {}, reachable {}, access balance {}",
                known(run.local_fraction),
                known(run.reachable_fraction),
                known(run.access_balance),
            );
            let outside = match run.over_objects {
                true => format!(
                    "; outside the objects {} of all accesses",
                    known(run.elsewhere_share)
                ),
                false => String::new(),
            };
            self.line(out, &(metrics + &outside));
        }
        self.line(out, &kernel(run));
    }

    /// The matrix: a row for each node with CPUs, a column for each memory node; local cells are bold.
    fn matrix(&self, out: &mut String, shares: &Shares<'_>, pages: &[u64]) {
        let memories = 0..self.experiment.nodes.len();
        let width = if memories.len() > 10 { 5 } else { 7 };
        let mut row = |head: &str, cells: Vec<String>, last: &str| {
            let cells = cells.into_iter().map(|cell| (width, cell));
            let (head, last) = ([(7, head.to_owned())], [(8, last.to_owned())]);
            let _ = writeln!(out, "{}", matrix_line(head.into_iter().chain(cells).chain(last)));
        };
        let numbers = memories.clone().map(|m| m.to_string()).collect();
        row("", numbers, "all");
        for reader in self.experiment.readers() {
            let cell = |memory: usize| {
                let text = short(shares.cell(reader, memory));
                if memory == reader {
                    self.paint(1, &text)
                } else {
                    text
                }
            };
            row(
                &reader.to_string(),
                memories.clone().map(cell).collect(),
                &short(shares.by_reader(reader)),
            );
        }
        let sums = memories.map(|m| short(shares.by_memory(m))).collect();
        row("all", sums, "100");
        if !pages.is_empty() {
            let counts = pages.iter().map(|p| tiny(*p)).collect();
            row("pages", counts, &tiny(pages.iter().sum()));
        }
    }

    fn several(&self, out: &mut String, runs: &[LabRun]) {
        let header = [
            "under",
            "local",
            "reachable",
            "balance",
            "accesses",
            "elsewhere",
            "we moved",
            "kernel moved",
            "hint faults",
            "exit",
        ];
        let rows = std::iter::once(header.map(str::to_owned).into()).chain(runs.iter().map(summary));
        let text = table("lrrrrrrrrr", rows);
        out.push('\n');
        for (i, line) in text.lines().enumerate() {
            let line = if i == 0 {
                self.paint(2, line)
            } else {
                line.to_owned()
            };
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    }

    /// The local fraction of each run over its slices, as one row of bars.
    fn over_time(&self, out: &mut String) {
        let sliced = || self.experiment.runs().iter().filter(|r| !r.slices.is_empty());
        let names = sliced().map(|r| r.name().chars().count()).max().unwrap_or(0);
        for run in sliced() {
            let width = self.screen.width.saturating_sub(names + 24);
            let last = run.slices.last().map_or(0.0, |s| s.end_seconds);
            self.line(
                out,
                &format!(
                    "{:names$}  local over {last:.0} s  {}",
                    run.name(),
                    bars(&run.slices, width)
                ),
            );
        }
    }

    fn notes(&self, out: &mut String) {
        let several = self.experiment.runs().len() > 1;
        for run in self.experiment.runs() {
            for note in &run.notes {
                let whose = if several {
                    format!("{}: ", run.name())
                } else {
                    String::new()
                };
                self.line(out, &format!("{whose}{note}"));
            }
        }
    }
}

fn kernel(run: &LabRun) -> String {
    let number = |n: Option<i64>, what: &str| match n {
        Some(n) => amount(n.unsigned_abs(), what),
        None => format!("an unknown number of {}", noun(0, what)),
    };
    let ours = run.balance.as_ref().map_or(String::new(), |b| {
        format!("the balancer moved {}; ", pages(b.pages_moved))
    });
    format!(
        "{ours}the kernel moved {} by itself and took {}; exit status {}",
        number(run.pages_migrated, "page"),
        number(run.hint_faults, "hint fault"),
        status(run)
    )
}

fn summary(run: &LabRun) -> Vec<String> {
    let share = |f: Option<f64>| f.map_or("–".to_owned(), percent);
    let number = |n: Option<i64>| n.map_or("–".to_owned(), |n| count(n.unsigned_abs()));
    let all = run.accesses.as_ref().map(|a| Shares::of(a).total);
    vec![
        escaped(&run.name()),
        share(run.local_fraction),
        share(run.reachable_fraction),
        share(run.access_balance),
        all.map_or("–".to_owned(), count),
        share(run.elsewhere_share),
        run.balance
            .as_ref()
            .map_or("–".to_owned(), |b| count(b.pages_moved)),
        number(run.pages_migrated),
        number(run.hint_faults),
        status(run),
    ]
}

fn status(run: &LabRun) -> String {
    run.exit_status.map_or("–".to_owned(), |s| s.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Results, example};

    fn plain(experiment: &Experiment) -> String {
        let (width, colour) = (100, false);
        write(experiment, Screen { width, colour })
    }

    fn alone() -> Experiment {
        let all = example();
        Experiment {
            results: Results::One(Box::new(all.runs()[0].clone())),
            ..all
        }
    }

    #[test]
    fn a_matrix_has_a_row_a_cpu_node_and_a_column_a_memory() {
        let text = plain(&alone());
        let row = |head: &str| {
            let line = text.lines().find(|l| l.trim_start().starts_with(head)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("2 "), ["2", "·", "·", "30.0", "10.0", "40.0"]);
        assert_eq!(row("all  "), ["all", "30.0", "30.0", "30.0", "10.0", "100"]);
        assert!(!text.contains("\n      3 "), "node 3 has no CPUs:\n{text}");
        assert!(text.contains("local fraction 90.0 %, reachable 95.0 %, access balance 50.0 %"));
    }

    #[test]
    fn several_placements_are_a_line_each_in_their_order() {
        let text = plain(&example());
        let starts: Vec<_> = ["under", "mixed:0.9", "interleave"]
            .map(|name| text.lines().position(|l| l.starts_with(name)))
            .to_vec();
        assert!(starts.iter().all(Option::is_some) && starts.is_sorted(), "{text}");
    }

    #[test]
    fn without_counters_only_the_kernel_speaks() {
        let mut quiet = alone();
        quiet.results = Results::One(Box::new(LabRun {
            accesses: None,
            ..quiet.runs()[0].clone()
        }));
        let text = plain(&quiet);
        assert!(
            !text.contains("local fraction") && text.contains(" hint faults; exit"),
            "{text}"
        );
        assert!(text.contains("nothing was counted"));
    }
}
