//! Policies that give pages several nodes: what is copied, what the copies or instances cost, and what they gain over placements.

use nodewise_analysis::figures::{and_more, bytes, ratio, seconds};
use nodewise_machine::format_list;
use nodewise_placement::Mirrored;
use nodewise_simulation::{Prediction, Range};
use serde::Serialize;

/// Copies that a policy makes, or instances of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copied {
    /// The nodes that get copies.
    pub nodes: Vec<u32>,
    /// Whether each node has an instance of the program, and not one program copies.
    pub instances: bool,
    /// Bytes of all copies, if all objects live at a time; the objects themselves stay. Of all instances.
    pub bytes: u64,
    /// Bytes of the copies, or of the instance, on one node.
    pub bytes_a_node: u64,
    /// Time of copying, which is part of the predicted time.
    pub seconds: f64,
    /// Speed-up over the baseline in the slices after the last copy: smallest, typical and largest value. Of instances, in all
    /// slices: what they do together in the same time.
    pub speedup_once_filled: [f64; 3],
    /// The placement that is fastest in the same slices.
    pub best_placement: String,
    /// The speed-up of that placement over the baseline there.
    pub best_placement_speedup: [f64; 3],
    /// How long the baseline must run on such work until copies have won back their time against that placement: at the
    /// largest, the typical and the smallest speed-up of copies; `null`: never.
    pub break_even_seconds: [Option<f64>; 3],
    /// The objects that are copied.
    pub objects: Vec<CopiedObject>,
    /// The above in words.
    pub sentence: String,
}

/// One object that is copied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopiedObject {
    /// Its name in the report.
    pub name: String,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The slice after which it is copied; `null`: before the program works.
    pub after_slice: Option<u32>,
    /// Whether a store to it was recorded. Without one it is not known when it is written, if by system calls.
    pub stored: bool,
}

/// Number of objects that a sentence names.
const MAX_NAMED: usize = 3;

impl Copied {
    /// The copies of a policy, compared with the fastest of `placements`; `None` if it makes none.
    #[must_use]
    pub fn of<'p>(policy: &Prediction, placements: impl Iterator<Item = &'p Prediction>) -> Option<Self> {
        let made = policy.copied.as_ref()?;
        // Instances are there from the beginning, and need no later to compare.
        let instances = made.copies.instance_bytes.is_some();
        let speedup = |p: &Prediction| if instances { p.speedup } else { p.speedup_later };
        let best = placements.max_by(|a, b| speedup(a).typical.total_cmp(&speedup(b).typical))?;
        let (gain, other) = (speedup(policy), speedup(best));
        let even = |gain: f64| made.break_even_seconds(gain, other.typical);
        let object = |o: &Mirrored| CopiedObject {
            name: o.name.clone(),
            bytes: o.bytes,
            after_slice: o.after.map(|s| s.0),
            stored: o.stored,
        };
        let copies = &made.copies;
        let mut copied = Self {
            nodes: copies.holders.iter().map(|n| n.0).collect(),
            instances,
            bytes: copies.bytes(),
            bytes_a_node: copies.bytes_a_node(),
            seconds: made.seconds,
            speedup_once_filled: three(gain),
            best_placement: best.policy.clone(),
            best_placement_speedup: three(other),
            break_even_seconds: [gain.max, gain.typical, gain.min].map(even),
            objects: copies.objects.iter().map(object).collect(),
            sentence: String::new(),
        };
        copied.sentence = match copied.instances {
            true => copied.of_instances(&copies.policy),
            false => copied.sentence(&copies.policy),
        };
        Some(copied)
    }

    fn sentence(&self, policy: &str) -> String {
        if self.objects.is_empty() {
            return format!(
                "{policy}: nothing is copied: of no array or file that fits are most pages read by several nodes in slices \
                 after the last store to it (shorter slices show more: `nodewise record --slice region`, `--slice 50ms`)."
            );
        }
        let named: Vec<String> = self.objects.iter().take(MAX_NAMED).map(described).collect();
        format!(
            "{policy}: a copy of {}{} on {} {}: up to {} more memory, filled in {}. {}",
            named.join(", "),
            and_more(self.objects.len().saturating_sub(MAX_NAMED), "object", "--json"),
            match self.nodes.len() {
                1 => "node",
                _ => "each of the nodes",
            },
            format_list(&self.nodes),
            bytes(self.bytes),
            seconds(self.seconds),
            self.gain(),
        )
    }

    fn of_instances(&self, policy: &str) -> String {
        let nodes = self.nodes.len() as f64;
        format!(
            "{policy}: an instance of the program on each of the nodes {}, its threads divided among them, {} on each (mapped files apart): together {} as \
             fast, and {}, the best placement of one program, {}.{} That holds if the work is independent pieces, such as requests, which \
             no recording shows; a piece takes {} as long as now. To start them: `numactl -N NODE -m NODE`, once a node.",
            format_list(&self.nodes),
            bytes(self.bytes_a_node),
            range_in_words(self.speedup_once_filled),
            self.best_placement,
            range_in_words(self.best_placement_speedup),
            self.remark_on_ranges(),
            ratio(nodes / self.speedup_once_filled[1]),
        )
    }

    fn remark_on_ranges(&self) -> &'static str {
        match self.speedup_once_filled[0] <= self.best_placement_speedup[2] {
            true => " The ranges overlap: measure both.",
            false => "",
        }
    }

    fn gain(&self) -> String {
        let even = |even: Option<f64>| even.map_or_else(|| "never".to_owned(), seconds);
        let [soonest, typical, latest] = self.break_even_seconds;
        format!(
            "From then on {}, and {}, the best placement without copies, {}: {}.{}",
            range_in_words(self.speedup_once_filled),
            self.best_placement,
            range_in_words(self.best_placement_speedup),
            match typical {
                None => "copies do not win back their time".to_owned(),
                Some(typical) => format!(
                    "copies win back their time after {} ({} to {}) of such work",
                    seconds(typical),
                    even(soonest),
                    even(latest)
                ),
            },
            typical.map_or("", |_| self.remark_on_ranges()),
        )
    }
}

fn range_in_words([least, typical, most]: [f64; 3]) -> String {
    format!("{} ({}–{})", ratio(typical), ratio(least), ratio(most))
}

fn described(object: &CopiedObject) -> String {
    let size = bytes(object.bytes);
    match (object.stored, object.after_slice) {
        (true, Some(slice)) => format!("{} ({size}, last store in slice {slice})", object.name),
        (false, Some(_)) => format!(
            "{} ({size}, no store recorded: who fills it, and when, is not known)",
            object.name
        ),
        (_, None) => format!("{} ({size}, a file)", object.name),
    }
}

fn three(range: Range) -> [f64; 3] {
    [range.min, range.typical, range.max]
}
