//! The threads of a recorded program.

use crate::Frame;
use std::collections::BTreeSet;

/// A thread of the observed program. If samples show its node, there is one entry for each node that it was observed
/// on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// The ordinal of its process.
    pub process: u16,
    /// The kernel's thread id at record time.
    pub tid: u32,
    /// `omp_get_thread_num()` inside the first parallel region it ran, if any.
    pub openmp: Option<u32>,
    /// The start routine; the main thread has `main`.
    pub start: Frame,
    /// CPU time, nanoseconds. A thread with several entries has its total, on all nodes, in only one of them.
    pub cpu_ns: u64,
    /// The node it ran on, in the host's numbering from 0; `None` if it was not observed.
    pub node: Option<u16>,
}

impl Thread {
    /// The number of threads in these entries: a thread that changed nodes has several.
    #[must_use]
    pub fn count(rows: &[Self]) -> usize {
        let (seen, unseen): (Vec<&Self>, Vec<&Self>) = rows.iter().partition(|t| t.node.is_some());
        let seen: BTreeSet<_> = seen.into_iter().map(|t| (t.process, t.tid)).collect();
        seen.len() + unseen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_on_two_nodes_is_one() {
        let row = |tid, node| Thread {
            tid,
            node,
            ..Thread::default()
        };
        assert_eq!(
            Thread::count(&[row(7, Some(0)), row(8, Some(0)), row(7, Some(1))]),
            2
        );
        assert_eq!(
            Thread::count(&[row(0, None), row(0, None)]),
            2,
            "nobody looked where they ran"
        );
    }
}
