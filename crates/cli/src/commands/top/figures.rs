//! The figures of a profile that one screen shows.

use nodewise_advise::Verdict;
use nodewise_pipeline::Analysed;
use nodewise_report::{Moves, Report, plural};

/// Counts by node: `[node that accesses][node of the page]`.
pub type Matrix = Vec<Vec<u64>>;

/// Everything that is shown. Texts contain no control characters.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub program: String,
    pub seconds: f64,
    pub exact: bool,
    /// Why the profile is incomplete, if it is.
    pub truncated: Option<String>,
    /// The verdict in one sentence, with the command to run next.
    pub verdict: String,
    /// Share of local accesses, 0 to 1, with pages where they are, including moves if there were any.
    pub local: f64,
    /// Bounds of that share if accesses are samples.
    pub local_range: Option<[f64; 2]>,
    pub accesses: Matrix,
    /// Number of pages by the node that accesses them most.
    pub pages: Matrix,
    /// Number of threads on each node.
    pub threads: Vec<usize>,
    pub objects: Vec<Object>,
    pub moves: Option<Rate>,
}

/// An object: a row of the table, and its details.
#[derive(Clone, Debug, Default)]
pub struct Object {
    pub name: String,
    pub pages: u64,
    pub accesses: u64,
    /// Share of its accesses that are remote, 0 to 1.
    pub remote_share: f64,
    pub advice: String,
    /// Label and text of each further detail.
    pub details: Vec<(&'static str, String)>,
    /// Code to copy that places the object, line by line.
    pub snippet: Vec<String>,
}

/// Number and rate of page moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Pages moved by nodewise per second, in the last time step that had moves.
    pub ours_a_second: f64,
    pub kernel_a_second: f64,
    pub ours: u64,
    pub kernel: u64,
    pub others: u64,
    pub ping_pongs: u64,
}

impl Object {
    /// Number of remote accesses.
    pub fn remote(&self) -> f64 {
        self.accesses as f64 * self.remote_share
    }
}

impl Figures {
    pub fn of(analysed: &Analysed) -> Self {
        let report = &analysed.report;
        let moved = report.moves.as_ref().and_then(|m| m.local_fraction);
        let today = report.policies.first().map_or(1.0, |p| p.local_fraction);
        Self {
            program: plain(&report.program.title()),
            seconds: report.program.wall_seconds,
            exact: report.program.exact,
            truncated: report.program.truncated.as_deref().map(plain),
            verdict: plain(&verdict(&report.verdict)),
            local: moved.unwrap_or(today),
            local_range: match &report.moves {
                Some(moves) if moved.is_some() => moves.local_range,
                _ => report.policies.first().and_then(|p| p.local_range),
            },
            accesses: analysed.accesses_by_node(),
            pages: analysed.pages_by_node(),
            threads: threads(report),
            objects: report.objects.iter().map(object).collect(),
            moves: report.moves.as_ref().filter(|m| m.pages > 0).map(rate),
        }
    }

    pub fn nodes(&self) -> usize {
        self.accesses.len()
    }
}

fn verdict(verdict: &Verdict) -> String {
    let next = verdict.next.as_ref().or(verdict.then.as_ref());
    let next = next.map(|next| format!(" Next: {next}"));
    format!("{}{}", verdict.sentence, next.unwrap_or_default())
}

fn threads(report: &Report) -> Vec<usize> {
    let mut threads = vec![0; report.machine.nodes.len()];
    for node in &report.affinity.thread_nodes {
        if let Some(count) = threads.get_mut(*node as usize) {
            *count += 1;
        }
    }
    threads
}

fn rate(moves: &Moves) -> Rate {
    let steps = &moves.over_time;
    let last = steps.iter().map(|s| s.end_seconds).fold(0.0, f64::max);
    let in_last = || steps.iter().filter(|s| s.end_seconds == last);
    let seconds = in_last()
        .map(|s| s.end_seconds - s.start_seconds)
        .fold(0.0, f64::max);
    let a_second = |pages: u64| {
        if seconds > 0.0 {
            pages as f64 / seconds
        } else {
            0.0
        }
    };
    Rate {
        ours_a_second: a_second(in_last().map(|s| s.ours).sum()),
        kernel_a_second: a_second(in_last().map(|s| s.kernel).sum()),
        ours: moves.ours,
        kernel: moves.kernel,
        others: moves.others,
        ping_pongs: moves.ping_pongs,
    }
}

fn object(object: &nodewise_report::Object) -> Object {
    let mut details = vec![
        ("allocated at", plain(&object.site)),
        ("size", nodewise_report::bytes(object.bytes)),
        ("sharing", plain(&object.sharing)),
        ("pattern", plain(&object.pattern)),
    ];
    if let Some(first) = &object.first_touch {
        let text = format!("{} by {}", plain(&first.at), plural(first.threads, "thread"));
        details.push(("first touched", text));
    }
    for each in &object.patterns {
        let share = nodewise_report::percent(each.share);
        let text = format!(
            "{} ({}): {share} of its accesses, {}",
            each.region, each.site, each.pattern
        );
        details.push(("used in", plain(&text)));
    }
    if let (Some(by), true) = (&object.used_by, object.patterns.is_empty()) {
        details.push((
            "used in",
            format!("{} by {}", plain(&by.at), plural(by.threads, "thread")),
        ));
    }
    details.push(("why", plain(&object.blame)));
    details.push(("advice", plain(&object.advice)));
    Object {
        name: plain(&object.name),
        pages: object.pages,
        accesses: object.accesses,
        remote_share: 1.0 - object.local_fraction,
        advice: plain(&object.advice),
        details,
        snippet: object.snippet.iter().flat_map(|s| s.lines()).map(plain).collect(),
    }
}

/// Replaces characters that would control the terminal or change the direction of text: names come from the observed
/// program.
pub fn plain(text: &str) -> String {
    let harmful = |c: char| {
        let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        c.is_control() || turns
    };
    text.chars()
        .map(|c| if harmful(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_commands_the_terminal() {
        let hostile = "a\x1b[2Jb\x07\r\nc\u{9b}31m\u{202e}d\u{200b}";
        let text = plain(hostile);
        assert!(
            text.chars().all(|c| !c.is_control() && c != '\u{202e}'),
            "{text:?}"
        );
        assert_eq!(plain("std::vector<ä, 行列>"), "std::vector<ä, 行列>");
    }
}
