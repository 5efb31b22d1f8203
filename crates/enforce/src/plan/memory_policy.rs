//! The memory policy that a command starts with, and what stands for one that the kernel does not have.

use super::{Options, Plan};
use crate::{EnforceError, Host, Request};
use nodewise_files::pieces::turns;
use nodewise_linux::HeldSetting;
use nodewise_linux::interleave_weights;
use nodewise_linux::mempolicy::Policy;
use nodewise_linux::node_mask::NodeMask;
use nodewise_machine::NodeId;
use nodewise_placement::Distribution;

impl Plan {
    /// The memory policy of the process; what goes by page number needs the preload instead.
    pub(super) fn process_policy(
        &mut self,
        request: &Request,
        host: &Host,
        options: &Options,
    ) -> Result<(), EnforceError> {
        let all: NodeMask = self.nodes.iter().copied().collect();
        self.policy = match request {
            Request::Map(_) => None,
            Request::Interleave => {
                let nodes = (0..self.nodes.len() as u32).map(NodeId).collect();
                return self.by_page_number(nodes, host, options);
            }
            Request::WeightedBy(weights) => return self.weigh(weights, host, options),
            Request::FirstTouch => host.chosen.then_some(Policy::PreferredMany(all)),
            Request::RoundRobin => Some(Policy::Interleave(all)),
            Request::Weighted => Some(Policy::WeightedInterleave(all)),
            Request::Node(n) => {
                let node = self.nodes.get(*n as usize).ok_or_else(|| {
                    EnforceError::new(format!(
                        "--policy node:{n}: nodes are 0 to {}",
                        self.nodes.len() - 1
                    ))
                })?;
                Some(Policy::Preferred(std::iter::once(*node).collect()))
            }
        };
        if host.pretended {
            self.policy = None;
        }
        self.settle_policy(all);
        Ok(())
    }

    /// Replaces a policy that needs a newer kernel by the nearest one that this kernel has.
    fn settle_policy(&mut self, all: NodeMask) {
        let Some(Err(error)) = self.policy.map(Policy::probe) else {
            return;
        };
        let (instead, note) = match self.policy {
            Some(Policy::WeightedInterleave(_)) => (
                Some(Policy::Interleave(all)),
                "this kernel has no weighted interleave (Linux 6.9): equal weights",
            ),
            Some(Policy::PreferredMany(_)) => (
                None,
                "this kernel cannot prefer several nodes (Linux 5.15): --nodes is for threads only",
            ),
            _ => (None, "the kernel refused the memory policy"),
        };
        self.policy = instead;
        self.notes.push(format!("{note} ({error})"));
    }

    /// Has the preload place what no rule names: pages take turns on these nodes by page number.
    fn by_page_number(
        &mut self,
        nodes: Vec<NodeId>,
        host: &Host,
        options: &Options,
    ) -> Result<(), EnforceError> {
        let fresh = self.empty_table(Distribution::Interleave(nodes), host, options, false)?;
        match &mut self.table {
            Some(table) => {
                table.flags |= fresh.flags;
                table.granule = fresh.granule;
                table.fallback = fresh.fallback;
            }
            none => *none = Some(fresh),
        }
        Ok(())
    }

    /// Interleaves by these weights, one for each node: by the kernel, of which all memory of all programs has it, where
    /// its weights are these or may be set, else by page number.
    fn weigh(&mut self, weights: &[u32], host: &Host, options: &Options) -> Result<(), EnforceError> {
        if weights.len() != self.nodes.len() {
            return Err(EnforceError::usage(format!(
                "--policy weighted: {} weights for {} nodes; give each node one",
                weights.len(),
                self.nodes.len()
            )));
        }
        let wanted: Vec<(u32, u32)> = self.nodes.iter().copied().zip(reduced(weights)).collect();
        let used = || wanted.iter().copied().filter(|(_, weight)| *weight > 0);
        let mask: NodeMask = used().map(|(node, _)| node).collect();
        let policy = Policy::WeightedInterleave(mask);
        let kernel = host.weights.as_ref().filter(|_| policy.probe().is_ok());
        let Some(kernel) = kernel else {
            return self.weigh_by_page(
                &wanted,
                "this kernel has no weighted interleave (Linux 6.9)",
                host,
                options,
            );
        };
        let now: Option<Vec<u32>> = used().map(|(node, _)| kernel.now.of(node)).collect();
        let same = !kernel.now.temporary
            && now.is_some_and(|now| reduced(&now).into_iter().eq(used().map(|(_, weight)| weight)));
        if !same && !kernel.writable {
            return self.weigh_by_page(
                &wanted,
                "the kernel's interleave weights are root's to set",
                host,
                options,
            );
        }
        self.policy = Some(policy);
        if !same {
            self.weights = used().collect();
        }
        Ok(())
    }

    /// Sets the kernel's interleave weights if the plan says so. They are put back when what this returns is dropped, and
    /// when this process ends in any other way. Where they cannot be set, pages are dealt by number instead.
    ///
    /// # Errors
    /// Neither is possible.
    pub fn hold_weights(
        &mut self,
        host: &Host,
        options: &Options,
    ) -> Result<Option<HeldSetting>, EnforceError> {
        if self.weights.is_empty() {
            return Ok(None);
        }
        interleave_weights::hold(&nodewise_linux::Host::default(), &self.weights)
            .map(Some)
            .or_else(|error| {
                let weights = std::mem::take(&mut self.weights);
                let of = |node: &u32| {
                    weights
                        .iter()
                        .find(|(n, _)| n == node)
                        .map_or(0, |(_, weight)| *weight)
                };
                let wanted: Vec<(u32, u32)> = self.nodes.iter().map(|node| (*node, of(node))).collect();
                self.weigh_by_page(&wanted, &error.to_string(), host, options)
                    .map(|()| None)
            })
    }

    /// What is to be known by whoever else interleaves by weights on this host; `None` if the kernel's weights stay.
    #[must_use]
    pub fn weights_line(&self) -> Option<String> {
        let each = self
            .weights
            .iter()
            .map(|(node, weight)| format!("{weight} on node {node}"));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| {
            format!(
                "the kernel's interleave weights, for all programs, are {} until this ends",
                each.join(", ")
            )
        })
    }

    /// Where the kernel does not interleave by these weights, for this reason: by page number if the preload can, else equally.
    fn weigh_by_page(
        &mut self,
        wanted: &[(u32, u32)],
        why: &str,
        host: &Host,
        options: &Options,
    ) -> Result<(), EnforceError> {
        let used = wanted
            .iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(node, _)| *node)
            .collect();
        self.policy = (!host.pretended).then_some(Policy::Interleave(used));
        if self.unreached {
            self.notes
                .push(format!("{why}, and this program takes no preload: equal weights"));
            return Ok(());
        }
        self.notes.push(format!(
            "{why}: objects of 64 KiB and more are dealt by page number in these shares, the rest equally"
        ));
        let (nodes, weights): (Vec<u32>, Vec<u32>) =
            (0..).zip(wanted.iter().map(|(_, weight)| *weight)).unzip();
        let turns = turns(&weights, &nodes).into_iter().map(NodeId).collect();
        self.by_page_number(turns, host, options)
    }
}

/// The same shares in the smallest numbers.
fn reduced(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    weights.iter().map(|weight| weight / divisor).collect()
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binding, PageSize, Roles};
    use std::ffi::OsString;

    fn planned(weights: &[u32]) -> Result<Plan, EnforceError> {
        let options = Options {
            binding: Binding::None,
            threads: None,
            page_size: PageSize::Auto,
            roles: Roles::Auto,
            places: Vec::new(),
        };
        let request = Request::WeightedBy(weights.to_vec());
        Plan::new(
            &request,
            &Host::pretended(2, 2),
            &[OsString::from("sh")],
            &options,
        )
    }

    #[test]
    fn pages_take_turns_by_number_where_the_kernel_has_no_weights() {
        let plan = planned(&[6, 2]).unwrap();
        let table = plan.table.unwrap();
        assert_eq!(table.fallback.to_string(), "interleave 0,0,1,0");
        assert!(
            plan.notes[0].contains("no weighted interleave"),
            "{:?}",
            plan.notes
        );
    }

    #[test]
    fn each_node_has_a_weight() {
        let error = planned(&[3, 1, 1]).unwrap_err().to_string();
        assert!(error.contains("3 weights for 2 nodes"), "{error}");
    }

    #[test]
    fn shares_are_in_the_smallest_numbers() {
        assert_eq!(reduced(&[6, 0, 2]), [3, 0, 1]);
        assert_eq!(reduced(&[255]), [1]);
    }
}
