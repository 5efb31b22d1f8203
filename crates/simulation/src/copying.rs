//! Policies that copy what is only read: until an object is copied its pages are where a mapping has them, then each CPU
//! reads the nearest copy. With an instance of the program on each node, all pages but those of files are so from the beginning: together
//! the instances do the recorded work in this time.

use crate::moving::MoveCost;
use crate::resources::Resources;
use crate::sums::Sums;
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Copies, Mapping, Mirrored, instance_pages};
use nodewise_profile::SliceId;
use std::collections::BTreeMap;

/// The copies that a policy made.
#[derive(Clone, Debug, PartialEq)]
pub struct Copied {
    /// What was copied, to which nodes, and when.
    pub copies: Copies,
    /// Time of copying, seconds; part of the predicted time, and the same in every scenario.
    pub seconds: f64,
}

impl Copied {
    /// How long the baseline would run on work on which copies are `gain` times as fast as it, and something else `other`
    /// times, until copies have won back their time; seconds. `None` if never.
    #[must_use]
    pub fn break_even_seconds(&self, gain: f64, other: f64) -> Option<f64> {
        let saved = 1.0 / other - 1.0 / gain;
        (saved > 0.0).then(|| self.seconds / saved)
    }
}

/// An object to copy, with its pages.
struct Pages {
    of: Mirrored,
    /// Indices in the histogram, ascending.
    pages: Vec<u32>,
}

/// Simulation state of one policy.
pub(crate) struct CopyingPolicy {
    pub copies: Copies,
    objects: Vec<Pages>,
    /// Indices in the histogram of the pages of which each node has its own, ascending; none if there is one program.
    instance: Vec<u32>,
    /// Pages on each node, copies included.
    pub pages_at: Vec<u64>,
    pub paid: MoveCost,
    /// Time of copying so far, nanoseconds.
    ns: f64,
}

impl CopyingPolicy {
    /// A policy that starts from this mapping.
    pub fn new(context: &Context<'_>, start: &Mapping, copies: Copies) -> Self {
        let mut pages: BTreeMap<_, Vec<u32>> =
            copies.objects.iter().map(|o| (o.object, Vec::new())).collect();
        for (index, object) in context.histogram.objects.iter().enumerate() {
            if let Some(pages) = pages.get_mut(object) {
                pages.push(index as u32);
            }
        }
        let objects = copies.objects.iter().map(|of| Pages {
            of: of.clone(),
            pages: pages.remove(&of.object).unwrap_or_default(),
        });
        let nodes = context.machine.node_count();
        let instance: Vec<u32> = match copies.instance_bytes {
            Some(_) => instance_pages(context).collect(),
            None => Vec::new(),
        };
        let mut pages_at = vec![0; nodes];
        for node in &start.nodes {
            pages_at[node.index()] += 1;
        }
        for page in &instance {
            pages_at[start.nodes[*page as usize].index()] -= 1;
        }
        Self {
            instance,
            objects: objects.collect(),
            copies,
            pages_at,
            paid: MoveCost::new(nodes, 0.0),
            ns: 0.0,
        }
    }

    /// Copies the objects that were last written in this slice, or that never are; charges the time. Returns their
    /// pages, ascending. `homes`: where the pages are until then.
    ///
    /// The time is that of moving as many bytes, by one thread: each page of a copy is allocated and filled once.
    pub fn step(
        &mut self,
        after: Option<SliceId>,
        homes: &[NodeId],
        resources: &Resources,
        seconds_per_gb: f64,
        sums: &mut Sums,
    ) -> Vec<u32> {
        let mut now = MoveCost::new(resources.nodes, seconds_per_gb);
        let mut all = Vec::new();
        if after.is_none() {
            all.extend(&self.instance);
            for holder in &self.copies.holders {
                self.pages_at[holder.index()] += self.instance.len() as u64;
            }
        }
        for Pages { of, pages } in self.objects.iter().filter(|p| p.of.after == after) {
            // Pages that are never accessed are copied, too, from where the others are.
            let bytes = of.bytes as f64 / pages.len().max(1) as f64;
            for page in pages {
                let from = homes[*page as usize].index();
                for holder in &self.copies.holders {
                    now.add(from, holder.index(), bytes);
                }
            }
            for holder in &self.copies.holders {
                self.pages_at[holder.index()] += pages.len() as u64;
            }
            all.extend_from_slice(pages);
        }
        self.ns += now.charge(resources, &mut self.paid, sums);
        all.sort_unstable();
        all
    }

    /// What was copied, with the time that it took.
    pub fn copied(&self) -> Copied {
        Copied {
            copies: self.copies.clone(),
            seconds: self.ns * 1e-9,
        }
    }
}
