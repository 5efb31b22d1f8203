//! Policies that copy objects: what is copied, what the copies cost, and what they gain over placements.

use nodewise_analysis::figures::{and_more, bytes, ratio, seconds};
use nodewise_machine::format_list;
use nodewise_placement::Mirrored;
use serde::Serialize;

/// Copies that a policy makes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copied {
    /// The nodes that get copies.
    pub nodes: Vec<u32>,
    /// Bytes of all copies; the objects themselves stay.
    pub bytes: u64,
    /// Bytes of the copies on one node.
    pub bytes_a_node: u64,
    /// Time of copying, which is part of the predicted time.
    pub seconds: f64,
    /// Speed-up over the baseline without the time of copying: smallest, typical and largest value.
    pub speedup_once_filled: [f64; 3],
    /// How long the baseline must run on such work until copying is won back; `null` if never.
    pub break_even_seconds: Option<f64>,
    /// The objects that are copied.
    pub objects: Vec<CopiedObject>,
    /// The above in a sentence.
    pub sentence: String,
}

/// One object that is copied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopiedObject {
    /// Its name in the profile.
    pub name: String,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The slice of the last write to it, after which it is copied; `null` if nothing writes it.
    pub after_slice: Option<u32>,
}

/// Number of objects that a sentence names.
const MAX_NAMED: usize = 3;

impl From<&nodewise_simulation::Copied> for Copied {
    fn from(made: &nodewise_simulation::Copied) -> Self {
        let object = |o: &Mirrored| CopiedObject {
            name: o.name.clone(),
            bytes: o.bytes,
            after_slice: o.after.map(|s| s.0),
        };
        let (copies, gain) = (&made.copies, made.speedup_once_filled);
        let mut copied = Self {
            nodes: copies.holders.iter().map(|n| n.0).collect(),
            bytes: copies.bytes(),
            bytes_a_node: copies.bytes_a_node(),
            seconds: made.seconds,
            speedup_once_filled: [gain.min, gain.typical, gain.max],
            break_even_seconds: made.break_even_seconds(),
            objects: copies.objects.iter().map(object).collect(),
            sentence: String::new(),
        };
        copied.sentence = copied.sentence(&copies.policy);
        copied
    }
}

impl Copied {
    fn sentence(&self, policy: &str) -> String {
        if self.objects.is_empty() {
            return format!(
                "{policy}: nothing is copied: no array or file that fits on each node is read by several nodes, and that \
                 mostly in slices after the last write to it (`nodewise record --slice region` makes more slices)"
            );
        }
        let object = |o: &CopiedObject| match o.after_slice {
            Some(slice) => format!("{} ({}, after slice {slice})", o.name, bytes(o.bytes)),
            None => format!("{} ({}, which nothing writes)", o.name, bytes(o.bytes)),
        };
        let named: Vec<String> = self.objects.iter().take(MAX_NAMED).map(object).collect();
        format!(
            "{policy}: a copy of {}{} on {} {}: {} more memory, filled in {}; {}",
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

    /// Completes the sentence: what the best placement gains, and who makes the copies.
    pub(crate) fn compare(&mut self, placement: &str, gain: f64) {
        self.sentence.push('.');
        if !self.objects.is_empty() {
            self.sentence += &format!(
                " The best placement without copies, {placement}: {}. Copies are the program's to make, by nw_replicate of \
                 libnodewise.",
                ratio(gain),
            );
        }
    }

    fn gain(&self) -> String {
        let [least, typical, most] = self.speedup_once_filled;
        let gain = format!(
            "{} ({}–{}) from then on",
            ratio(typical),
            ratio(least),
            ratio(most)
        );
        match self.break_even_seconds {
            Some(even) => format!("{gain}, won back after {} of such work", seconds(even)),
            None => gain,
        }
    }
}
