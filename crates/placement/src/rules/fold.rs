//! Folds a placement onto a machine with fewer nodes.

use super::{Distribution, Placement};
use nodewise_machine::NodeId;
use std::borrow::Cow;

impl Placement {
    /// The same placement for a machine with only `nodes` nodes. Each of these stands for an equal number (within one)
    /// of neighbouring nodes of the placement, so that what was on one node stays together, and what was evenly spread
    /// stays so.
    #[must_use]
    pub fn folded(&self, nodes: u32) -> Cow<'_, Self> {
        if self.nodes <= nodes || nodes == 0 {
            return Cow::Borrowed(self);
        }
        let mut folded = self.clone();
        let here = |node: &mut NodeId| {
            node.0 = (u64::from(node.0) * u64::from(nodes) / u64::from(self.nodes)) as u32;
        };
        folded.binding.nodes.iter_mut().for_each(here);
        fold_distribution(&mut folded.default, here);
        for rule in &mut folded.rules {
            fold_distribution(&mut rule.distribution, here);
            rule.runs.iter_mut().for_each(|r| here(&mut r.node));
        }
        folded.nodes = nodes;
        Cow::Owned(folded)
    }
}

fn fold_distribution(distribution: &mut Distribution, here: impl Fn(&mut NodeId)) {
    match distribution {
        Distribution::Node(node) => here(node),
        Distribution::Interleave(list) => list.iter_mut().for_each(here),
        Distribution::Dealt(dealt) => dealt.nodes.iter_mut().for_each(here),
        Distribution::Block(parts) => parts.iter_mut().for_each(|p| here(&mut p.0)),
        Distribution::FirstTouch | Distribution::ByThread { .. } | Distribution::Allocator => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Kept, Rule, Selector, ThreadBinding};
    use nodewise_machine::CpuId;
    use proptest::prelude::*;

    /// Thread i and an object with one part on node i.
    fn placement(nodes: u32) -> Placement {
        let all: Vec<NodeId> = (0..nodes).map(NodeId).collect();
        let object = Selector {
            kind: nodewise_profile::ObjectKind::Heap,
            site: None,
            name: None,
            thread: None,
            sequence: None,
        };
        Placement {
            policy: "locality".into(),
            machine: "large".into(),
            nodes,
            program: "app".into(),
            threads: nodes,
            page_size: 4096,
            binding: ThreadBinding {
                name: "sharing-aware".into(),
                cpus: (0..nodes).map(CpuId).collect(),
                nodes: all.clone(),
            },
            default: Distribution::Interleave(all.clone()),
            rules: vec![Rule {
                object,
                distribution: Distribution::Block(all.iter().map(|n| (*n, 1.0 / f64::from(nodes))).collect()),
                runs: Vec::new(),
                pages: 1,
                weight: 1.0,
            }],
            kept: Kept::default(),
        }
    }

    proptest! {
        #[test]
        fn folded_nodes_take_equal_shares_and_neighbours_stay_together(map in 1u32..40, here in 1u32..40) {
            let placement = placement(map);
            let folded = placement.folded(here);
            let nodes = &folded.binding.nodes;
            prop_assert!(nodes.is_sorted());
            let share = |n| nodes.iter().filter(|m| m.0 == n).count() as u32;
            let used = map.min(here);
            for node in 0..used {
                prop_assert!(share(node).abs_diff(map / used) <= 1);
            }
            // Threads and data are folded in the same way.
            let Distribution::Block(parts) = &folded.rules[0].distribution else { unreachable!() };
            prop_assert_eq!(&parts.iter().map(|p| p.0).collect::<Vec<_>>(), nodes);
        }
    }
}
