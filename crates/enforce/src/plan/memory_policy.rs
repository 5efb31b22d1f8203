//! The memory policy that a command starts with, and what stands for one that the kernel does not have.

use super::{Options, PageSize, Plan};
use crate::{EnforceError, Host, Request};
use nodewise_files::pieces::{one_each, turns};
use nodewise_linux::HeldSetting;
use nodewise_linux::interleave_weights::{self, Weights};
use nodewise_linux::mempolicy::Policy;
use nodewise_linux::node_mask::NodeMask;
use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, lowest_terms};
use std::io;

/// The weights of the kernel's weighted interleaving (Linux 6.9), which are the whole system's.
struct KernelWeights {
    /// The weights, and whether another of our processes set them.
    now: Weights,
    /// Whether this process may change them.
    writable: bool,
}

impl KernelWeights {
    /// Those of this kernel, or why a command cannot have some of its own.
    fn of(host: &Host) -> Result<Self, String> {
        if host.pretended {
            return Err("nothing is known of this kernel".into());
        }
        if let Some(why) = &host.weights_refused {
            return Err(why.clone());
        }
        let system = nodewise_linux::Host::default();
        let now = system.interleave_weights().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => "this kernel has no weighted interleaving (Linux 6.9)".to_owned(),
            _ => format!("the kernel's interleave weights cannot be read ({e})"),
        })?;
        let writable = now.writable(&system);
        Ok(Self { now, writable })
    }
}

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
            Request::Weighted => {
                if KernelWeights::of(host).is_ok_and(|kernel| kernel.now.temporary) {
                    let note =
                        "the kernel's interleave weights are those of another `nodewise run` until it ends";
                    self.notes.push(note.into());
                }
                Some(Policy::WeightedInterleave(all))
            }
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
            Some(Policy::WeightedInterleave(_)) if unknown(&error) => (
                Some(Policy::Interleave(all)),
                "this kernel has no weighted interleave (Linux 6.9): equal weights",
            ),
            Some(Policy::PreferredMany(_)) if unknown(&error) => (
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
        // The kernel, which deals where it can, does so by pages of the size that it has.
        let options = Options {
            page_size: PageSize::Auto,
            ..options.clone()
        };
        let fresh = self.empty_table(Distribution::Interleave(nodes), host, &options, false)?;
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

    /// Interleaves by these weights, one for each node: by the kernel, of which all memory of the program has it, where its
    /// weights are these or may be set, else by page number.
    fn weigh(&mut self, weights: &[u32], host: &Host, options: &Options) -> Result<(), EnforceError> {
        one_each(weights, self.nodes.len())
            .map_err(|why| EnforceError::usage(format!("--policy weighted: {why}")))?;
        let weights = lowest_terms(weights);
        let wanted = self.nodes.iter().copied().zip(weights.iter().copied());
        let used: Vec<(u32, u32)> = wanted.filter(|(_, weight)| *weight > 0).collect();
        let mask: NodeMask = used.iter().map(|(node, _)| *node).collect();
        let policy = Policy::WeightedInterleave(mask);
        let kernel = match (KernelWeights::of(host), policy.probe()) {
            (Ok(kernel), Ok(())) => kernel,
            (Err(why), _) => return self.weigh_by_page(&weights, &why, host, options),
            (_, Err(error)) => {
                let why = format!("the kernel refused weighted interleaving ({error})");
                return self.weigh_by_page(&weights, &why, host, options);
            }
        };
        if !kernel.writable {
            let now: Option<Vec<u32>> = used.iter().map(|(node, _)| kernel.now.of(*node)).collect();
            let same = now.is_some_and(|now| {
                lowest_terms(&now)
                    .iter()
                    .eq(used.iter().map(|(_, weight)| weight))
            });
            if !same || kernel.now.temporary {
                let why = "the kernel's interleave weights cannot be set here (root's, below /sys)";
                return self.weigh_by_page(&weights, why, host, options);
            }
        } else {
            // Those that are these already are held as well, so that no other run changes them.
            self.weights = used;
        }
        self.policy = Some(policy);
        Ok(())
    }

    /// Sets the kernel's interleave weights if the plan says so. They are put back when what this returns is dropped, and
    /// when this process ends in any other way.
    ///
    /// # Errors
    /// They cannot be set: a plan for a host with this reason in its `weights_refused` does without.
    pub fn hold_weights(&self) -> io::Result<Option<HeldSetting>> {
        if self.weights.is_empty() {
            return Ok(None);
        }
        interleave_weights::hold(&nodewise_linux::Host::default(), &self.weights).map(Some)
    }

    /// The weights that the kernel has for all programs while this one runs; `None` if they stay as they are.
    #[must_use]
    pub fn weights_line(&self) -> Option<String> {
        let each = self
            .weights
            .iter()
            .map(|(node, weight)| format!("{weight} on node {node}"));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| {
            let each = each.join(", ");
            format!("the kernel's interleave weights for all programs are {each} while this one runs")
        })
    }

    /// Where the kernel does not interleave by these weights, for this reason: by page number if the preload can, else
    /// equally.
    fn weigh_by_page(
        &mut self,
        weights: &[u32],
        why: &str,
        host: &Host,
        options: &Options,
    ) -> Result<(), EnforceError> {
        let used = self.nodes.iter().zip(weights).filter(|(_, weight)| **weight > 0);
        self.policy = (!host.pretended).then(|| Policy::Interleave(used.map(|(node, _)| *node).collect()));
        let dealt = match self.unreached {
            true => "this program takes no preload: equal weights",
            false => {
                "heap objects of 64 KiB and more of dynamically linked programs are dealt by page number in these shares, the \
                 rest equally"
            }
        };
        self.notes.push(format!("{why}: {dealt}"));
        self.settle_policy(NodeMask::default());
        if self.unreached {
            return Ok(());
        }
        let nodes: Vec<u32> = (0..weights.len() as u32).collect();
        let turns = turns(weights, &nodes).into_iter().map(NodeId).collect();
        self.by_page_number(turns, host, options)
    }
}

/// Whether the kernel knows no such policy; a filter of system calls, as containers have, refuses otherwise.
fn unknown(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binding, Roles};
    use std::ffi::OsString;

    fn planned(weights: &[u32]) -> Result<Plan, EnforceError> {
        let options = Options {
            binding: Binding::None,
            threads: None,
            page_size: PageSize::Auto,
            roles: Roles::Auto,
            places: Vec::new(),
            schedule: None,
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
            plan.notes[0].contains("nothing is known of this kernel: heap objects"),
            "{:?}",
            plan.notes
        );
    }

    #[test]
    fn each_node_has_a_weight() {
        let error = planned(&[3, 1, 1]).unwrap_err().to_string();
        assert!(error.contains("3 weights for 2 nodes"), "{error}");
    }
}
