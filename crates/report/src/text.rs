//! The report on one screen: verdict, policies, diagnosis of the costliest objects, and reliability of the figures.

mod coverage;
mod moves;

use crate::findings::dealt_note;
use crate::roles;
use crate::table::table;
use crate::{FewLines, Object, Policy, Report, Sampling, bytes, count, percent, ratio, seconds};
pub use coverage::coverage;
use nodewise_advise::{FEW_LINES, VerdictKind};
use nodewise_analysis::figures::{amount, and_more, between, grouped, pages, plural};
use nodewise_input::escaped;
use std::fmt::Write;

/// Properties of the terminal that the text is for.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns; lines are wrapped or shortened to fit.
    pub width: usize,
    /// Whether escape sequences are understood.
    pub colour: bool,
}

/// Largest number of objects whose diagnosis is shown.
const MAX_OBJECTS_DIAGNOSED: usize = 3;
/// Share of the run time that an object must account for to be shown.
const MIN_COST_SHARE: f64 = 0.02;
/// Smallest width for which lines are laid out; on a narrower screen the terminal wraps them.
const MIN_WIDTH: usize = 60;
/// Largest number of objects, of those with at least 1 % of the accesses, that are described for a machine with one
/// node.
const MAX_OBJECTS_DESCRIBED: usize = 5;
/// Largest number of further objects named because their accesses go to a few cache lines.
const MAX_OBJECTS_NAMED: usize = 3;
/// Where all objects are listed.
const ALL_OBJECTS: &str = "--html FILE or --json";
/// The next step if the report is for a machine with one node.
const NAME_A_MACHINE: &str =
    "Name the machine you mean, such as --machine epyc-2s-nps4; `nodewise topo --list` has them all.";

/// The summary, ending in a newline.
#[must_use]
pub fn write(report: &Report, screen: Screen) -> String {
    let writer = Writer {
        screen: Screen {
            width: screen.width.max(MIN_WIDTH),
            ..screen
        },
    };
    let mut out = String::new();
    writer.head(&mut out, report);
    writer.verdict(&mut out, report);
    if report.has_one_node() {
        writer.program(&mut out, report);
    } else {
        out.push_str(&writer.policies(report));
        writer.objects(&mut out, report);
    }
    writer.roles(&mut out, report);
    writer.moves(&mut out, report);
    writer.trust(&mut out, report);
    out
}

struct Writer {
    screen: Screen,
}

impl Writer {
    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.screen.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Appends `text`, wrapped. The first line begins with `lead`, the others with spaces of the same width.
    fn wrapped(&self, out: &mut String, lead: &str, text: &str, paint: impl Fn(&str) -> String) {
        let indent = lead.chars().count();
        for (i, line) in wrap(text, self.screen.width - indent).iter().enumerate() {
            let lead = if i == 0 { lead } else { &" ".repeat(indent)[..] };
            let _ = writeln!(out, "{lead}{}", paint(line));
        }
    }

    fn head(&self, out: &mut String, report: &Report) {
        let p = &report.program;
        let facts = format!(
            "{}: {} ({}) on {} ({}), {} pages",
            escaped(&p.title()),
            plural(p.threads, "thread"),
            report.affinity.name,
            report.machine.name,
            plural(report.machine.nodes.len(), "node"),
            bytes(report.page_size)
        );
        self.wrapped(out, "", &facts, |l| self.dim(l));
        if let Some(reason) = &p.truncated {
            self.wrapped(out, "", &format!("cut short: {}", escaped(reason)), |l| {
                self.paint("33", l)
            });
        }
    }

    fn verdict(&self, out: &mut String, report: &Report) {
        let code = match report.verdict.outcome {
            VerdictKind::Place | VerdictKind::Stock | VerdictKind::Match => "1;33",
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound => "1;32",
            VerdictKind::Undecided | VerdictKind::Unknown => "1",
        };
        self.wrapped(out, "", &escaped(&report.verdict.sentence), |l| {
            self.paint(code, l)
        });
        if let Some(next) = &report.verdict.next {
            // Broken after `&&`, a command line can still be copied: the shell expects more input there.
            for (lead, part) in std::iter::once("  next: ")
                .chain(std::iter::repeat("        "))
                .zip(steps(next))
            {
                let _ = writeln!(out, "{lead}{}", self.bold(&escaped(part)));
            }
        }
        if let Some(then) = &report.verdict.then {
            let lead = if report.verdict.next.is_some() {
                "  then: "
            } else {
                "  next: "
            };
            self.wrapped(out, lead, &escaped(then), str::to_owned);
        }
        out.push('\n');
    }

    /// The part of the report that holds for a machine with one node: figures of the program alone.
    fn program(&self, out: &mut String, report: &Report) {
        self.wrapped(out, "  ", NAME_A_MACHINE, str::to_owned);
        out.push('\n');
        let share = |n: u64| percent(n as f64 / report.totals.accesses.max(1) as f64);
        let mut largest: Vec<_> = report.objects.iter().collect();
        largest.retain(|o| o.accesses * 100 >= report.totals.accesses);
        largest.sort_by_key(|o| std::cmp::Reverse(o.accesses));
        largest.truncate(MAX_OBJECTS_DESCRIBED);
        for object in &largest {
            let reads = |r| format!(", {} of them reads", percent(r));
            let text = format!(
                "{}: {}{}, {} of all {}{}; {}, {}",
                escaped(&object.name),
                bytes(object.pages * report.page_size),
                allocated(object),
                share(object.accesses),
                counted(report),
                object.read_fraction.map(reads).unwrap_or_default(),
                object.sharing,
                object.pattern
            );
            self.wrapped(out, "", &text, str::to_owned);
        }
        self.more(out, report.objects.len() - largest.len(), "object", ALL_OBJECTS);
        self.few_lines(out, report, &[]);
        out.push('\n');
    }

    /// A line on what a list above it leaves out; nothing if it is complete.
    fn more(&self, out: &mut String, left: usize, what: &str, whole: &str) {
        if left > 0 {
            let _ = writeln!(out, "{}", self.dim(and_more(left, what, whole).trim_start()));
        }
    }

    /// Names further objects whose accesses go to a few cache lines (waiting, variables that all threads use).
    fn few_lines(&self, out: &mut String, report: &Report, described: &[&Object]) {
        let is_described = |name: &String| described.iter().any(|o| o.name == *name);
        let outside = report.few_lines.iter();
        let outside: Vec<_> = outside
            .filter(|f| !f.object.as_ref().is_some_and(is_described))
            .collect();
        if outside.is_empty() {
            return;
        }
        let place = |f: &&FewLines| {
            let pages = plural(f.pages, "page");
            match &f.object {
                Some(name) => format!("{pages} of `{}`", escaped(name)),
                None => format!("{pages} of no object"),
            }
        };
        let places: Vec<String> = outside.iter().take(MAX_OBJECTS_NAMED).map(place).collect();
        let more: usize = outside.iter().skip(MAX_OBJECTS_NAMED).map(|f| f.pages).sum();
        let more = and_more(more, "page", "--json");
        let text = format!(
            "{} of all accesses are to a few lines of {}{more}: {FEW_LINES}. Shares of accesses say that much about \
             these lines; predicted times do not.",
            percent(outside.iter().map(|f| f.share).sum()),
            places.join(", "),
        );
        self.wrapped(out, "", &text, str::to_owned);
    }

    fn policies(&self, report: &Report) -> String {
        let wide = self.screen.width >= 96;
        let mut head = vec!["policy"];
        if report.program.exact {
            head.extend(["predicted time", "speed-up", "local", "access balance"]);
        } else {
            head.push("local, by samples");
        }
        if wide || !report.program.exact {
            head.extend(["page balance", "pages moved"]);
        }
        let text_columns = if report.program.exact { "ll" } else { "l" };
        let columns = format!("{text_columns:r<width$}", width = head.len());
        let head = head.into_iter().map(str::to_owned).collect();
        let policies = report.policies.iter().chain(&report.copies);
        let rows = policies.map(|policy| row(policy, report.recommends(policy), wide));
        let text = table(&columns, std::iter::once(head).chain(rows));
        let mut out = match text.split_once('\n') {
            Some((head, rest)) => format!("{}\n{rest}\n", self.dim(head)),
            None => text,
        };
        for copied in report.copies.iter().filter_map(|p| p.copies.as_ref()) {
            self.wrapped(&mut out, "", &escaped(&copied.sentence), str::to_owned);
            out.push('\n');
        }
        out
    }

    fn objects(&self, out: &mut String, report: &Report) {
        let share = |o: &Object| o.accesses as f64 / report.totals.accesses.max(1) as f64;
        let matters =
            |o: &&Object| o.cost_share.unwrap_or_else(|| share(o)) >= MIN_COST_SHARE || o.is_mismatched();
        let mut shown: Vec<&Object> = report
            .objects
            .iter()
            .filter(matters)
            .take(MAX_OBJECTS_DIAGNOSED)
            .collect();
        if shown.is_empty() {
            shown.extend(report.objects.first());
        }
        let mut code = shown.iter().find_map(|o| o.snippet.as_ref());
        for object in &shown {
            self.wrapped(out, "", &escaped(&object.blame), str::to_owned);
            // If the verdict is to change nothing, advice of "Leave it alone." for each object would only repeat it.
            if report.verdict.outcome.is_to_act() || object.is_mismatched() || object.sampled.is_some() {
                self.wrapped(out, "  → ", &escaped(&object.advice), str::to_owned);
            }
            if let Some(snippet) = code.take_if(|_| object.snippet.is_some()) {
                for line in snippet.lines() {
                    let line = format!("      {}", self.dim(&escaped(line)));
                    let _ = writeln!(out, "{}", line.trim_end());
                }
            }
        }
        self.more(out, report.objects.len() - shown.len(), "object", ALL_OBJECTS);
        self.few_lines(out, report, &shown);
        out.push('\n');
    }

    /// How threads get their parts of the data in other runs, and what that costs the recommended or else the best
    /// policy.
    fn roles(&self, out: &mut String, report: &Report) {
        let Some(roles) = &report.roles else {
            if let Some(sentence) = report.roles_unknown.as_ref().filter(|_| !report.has_one_node()) {
                self.wrapped(out, "", sentence, str::to_owned);
            }
            return;
        };
        self.wrapped(out, "", &roles.sentence, str::to_owned);
        if let Some(sentence) = roles.not_followed_sentence {
            self.wrapped(out, "", sentence, str::to_owned);
        }
        let others = || report.policies.iter().skip(1);
        let best = || others().max_by(|a, b| a.local_fraction.total_cmp(&b.local_fraction));
        let policy = others().find(|p| report.recommends(p)).or_else(best);
        let worth = policy.and_then(|p| {
            let other = p.other_runs.as_ref()?;
            roles::other_run_sentence(&p.policy, p.local_fraction, other, roles.assumed)
        });
        if let Some(worth) = worth.filter(|_| !report.has_one_node()) {
            self.wrapped(out, "", &worth, str::to_owned);
        }
        for dynamic in roles.loops.iter().take(MAX_OBJECTS_DIAGNOSED) {
            let text = format!(
                "`{}` {} ({} of the traffic) deals its work {}.",
                escaped(&dynamic.function),
                escaped(&dynamic.site),
                percent(dynamic.share),
                match dynamic.schedule {
                    "tasks" => "as tasks".to_owned(),
                    "ordered" => "dynamically, in a loop with `ordered`".to_owned(),
                    schedule => format!("by schedule({schedule})"),
                }
            );
            self.wrapped(out, "", &text, str::to_owned);
            self.wrapped(out, "  → ", &dynamic.advice, str::to_owned);
        }
        let left = roles.loops.len().saturating_sub(MAX_OBJECTS_DIAGNOSED);
        self.more(out, left, "loop", "--json");
        if let Some(command) = &roles.static_schedule {
            let text = format!(
                "without a change to the program, to see what that gives: {}",
                escaped(command)
            );
            self.wrapped(out, "  → ", &text, str::to_owned);
        }
        out.push('\n');
    }

    fn moves(&self, out: &mut String, report: &Report) {
        let Some(moves) = &report.moves else { return };
        for sentence in moves::sentences(moves) {
            self.wrapped(out, "", &sentence, str::to_owned);
        }
        out.push('\n');
    }

    fn trust(&self, out: &mut String, report: &Report) {
        if let Some(sampling) = &report.sampling {
            self.wrapped(out, "", &sampled(report, sampling), |l| self.dim(l));
            return;
        }
        let host = match report.program.host.cpus {
            0 => String::new(),
            cpus => format!(" on {}", plural(cpus as usize, "CPU")),
        };
        let recorded = format!("recording took {}{host}", seconds(report.program.wall_seconds));
        let (exclusivity, times) = if report.has_one_node() {
            (String::new(), format!("The {recorded}."))
        } else {
            (
                format!("; exclusivity {}", percent(report.application_exclusivity)),
                format!("Times are estimates for {}; {recorded}.", report.machine.name),
            )
        };
        let text = format!(
            "{} to {}, exact ({}){exclusivity}; {}. {times}",
            amount(report.totals.accesses, "access"),
            pages(report.totals.pages),
            report.program.observer,
            coverage(&report.coverage),
        );
        self.wrapped(out, "", &text, |l| self.dim(l));
        if let Some(schedule) = &report.program.loop_schedule {
            self.wrapped(out, "", &dealt_note(schedule), |l| self.dim(l));
        }
    }
}

fn row(policy: &Policy, recommended: bool, wide: bool) -> Vec<String> {
    let mut row = vec![format!(
        "{}{}",
        policy.policy,
        if recommended { " *" } else { "" }
    )];
    let time = policy.seconds.zip(policy.seconds_range);
    if let Some((typical, range)) = time {
        let [least, most] = range.map(seconds);
        row.push(format!("{} ({least} – {most})", seconds(typical)));
    }
    row.extend(policy.speedup.map(ratio));
    row.push(match policy.local_range {
        Some(range) => between(range, 0.0),
        None => percent(policy.local_fraction),
    });
    row.extend(policy.access_balance.map(percent));
    if wide || time.is_none() {
        row.extend([percent(policy.page_balance), count(policy.migrations)]);
    }
    row
}

/// A remark on an array that the program allocates repeatedly; empty otherwise.
fn allocated(object: &Object) -> String {
    match object.allocations {
        0 | 1 => String::new(),
        times => format!(", allocated {} times", grouped(times)),
    }
}

/// The unit of the counts: accesses or samples.
fn counted(report: &Report) -> &'static str {
    if report.program.exact {
        "accesses"
    } else {
        "samples"
    }
}

/// How accesses were sampled, and how that limits the figures.
fn sampled(report: &Report, sampling: &Sampling) -> String {
    let seen = &sampling.exclusivity;
    let exclusivity = match seen.range {
        Some([low, high]) => format!(
            "exclusivity: {} ({} of samples) by the {} with {} or more",
            between([low, high], 1.0 / report.machine.nodes.len().max(1) as f64),
            percent(report.application_exclusivity),
            pages(seen.judged),
            sampling.recorded.minimum_samples
        ),
        None => format!(
            "no page has the {} it takes to be judged",
            sampling.recorded.minimum_samples
        ),
    };
    format!(
        "{} of {} ({}), {exclusivity}. A page is seen once a scan, however often it is used: pages \
         weigh alike, bounds allow for {} times as many accesses a sample by one node as by another, and no time \
         is predicted. Sampling took {} of the program's CPU time; the run {}.",
        amount(report.totals.accesses, "sample"),
        pages(report.totals.pages),
        report.program.observer,
        sampling.intensity,
        percent(sampling.recorded.cost),
        seconds(report.program.wall_seconds)
    )
}

/// Splits a line into its commands; each but the last keeps its `&&`.
fn steps(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(" && ").map(str::trim_end)
}

/// Wraps text greedily at spaces; words longer than a line are not broken.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut used = 0;
    // A number and its per cent sign stay on one line.
    for word in text.replace(" %", "\u{a0}%").split(' ') {
        let word = word.replace('\u{a0}', " ");
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("starts with one line");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_fit_and_lose_no_word() {
        let text = "the quick brown fox jumps over the lazy dog and on";
        let lines = wrap(text, 12);
        assert!(lines.iter().all(|l| l.chars().count() <= 12), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }
}
