//! The decision rule whether a page should leave its home.

use super::{Number, Reason};
use nodewise_machine::NodeId;

/// The target node and the reason; `None`: the page stays.
pub type Proposal = Option<(NodeId, Reason)>;

/// The sum and the largest of some counts, computed in parallel lanes; exact, as counts are whole numbers.
#[inline]
fn sum_and_most<N: Number>(counts: &[N]) -> (N, N) {
    let more = |a: N, b: N| if b > a { b } else { a };
    let (rows, rest) = counts.as_chunks::<4>();
    let (mut sum, mut most) = ([N::default(); 4], [N::default(); 4]);
    for row in rows {
        for (sum, count) in sum.iter_mut().zip(row) {
            *sum = sum.plus(*count);
        }
        for (most, count) in most.iter_mut().zip(row) {
            *most = more(*most, *count);
        }
    }
    let both = (
        sum[0].plus(sum[1]).plus(sum[2].plus(sum[3])),
        more(more(most[0], most[1]), more(most[2], most[3])),
    );
    let add = |(sum, most): (N, N), &c: &N| (sum.plus(c), more(most, c));
    rest.iter().fold(both, add)
}

/// The first node, other than `home`, with this many accesses.
#[inline]
fn node_with<N: Number>(counts: &[N], count: N, home: NodeId) -> Option<NodeId> {
    let nodes = (0..counts.len() as u32).map(NodeId);
    nodes.filter(|n| *n != home).find(|n| counts[n.index()] >= count)
}

/// To the remote node with the most accesses, if they exceed `threshold` times the average of the remote nodes (ARS 3.2
/// and 4).
///
/// "The difference between the biggest remote accesses and the average exceeds a threshold […] of two times of the
/// average", taken literally, is `max − average > 2 × average`. That cannot hold for the paper's three remote nodes, as
/// `max` is at most the sum, which is three averages. So we read `max > 2 × average`, which on four nodes means that
/// one remote node has more than twice as many accesses as the other two together. The home's own count is ignored and
/// must be 0.
#[inline]
#[must_use]
pub fn against_remote<N: Number>(home: NodeId, counts: &[N], threshold: f64) -> Proposal {
    let (all, most) = sum_and_most(counts);
    let (evidence, to_count) = (all.get(), most.get());
    let remote = (counts.len() - 1) as f64;
    if to_count * remote <= threshold * evidence {
        return None;
    }
    let reason = Reason {
        to_count,
        home_count: None,
        count_threshold: threshold * evidence / remote,
        evidence,
        regardless: false,
        partner: None,
    };
    node_with(counts, most, home).map(|to| (to, reason))
}

/// To the remote node with the most accesses, if they exceed the average of the remote nodes by more than `constant`,
/// which is the same for all pages of a home.
///
/// This is the other reading of ARS 3.2 and 4: "the difference between the biggest remote accesses and the average
/// exceeds a threshold", a "constant threshold of two times of the average references performed to a page", where the
/// latter average is over pages. A page that one remote node uses rarely does not move, even if no other node uses it.
#[inline]
#[must_use]
pub fn against_all<N: Number>(home: NodeId, counts: &[N], constant: f64) -> Proposal {
    let (all, most) = sum_and_most(counts);
    let (evidence, to_count) = (all.get(), most.get());
    let count_threshold = evidence / (counts.len() - 1) as f64 + constant;
    let reason = Reason {
        to_count,
        home_count: None,
        count_threshold,
        evidence,
        regardless: false,
        partner: None,
    };
    let to = (to_count > count_threshold).then(|| node_with(counts, most, home));
    to.flatten().map(|to| (to, reason))
}

/// To the remote node with the most accesses, if they exceed `threshold` times the home's (ARS 4: "the
/// greatest access number will not be compared with the average accesses […] but with the local
/// references").
#[inline]
#[must_use]
pub fn against_local<N: Number>(home: NodeId, counts: &[N], threshold: f64) -> Proposal {
    let (all, most) = sum_and_most(counts);
    let home_count = counts[home.index()].get();
    let count_threshold = threshold * home_count;
    if most.get() <= count_threshold {
        return None;
    }
    let (before, after) = (&counts[..home.index()], &counts[home.index() + 1..]);
    let (below, above) = (sum_and_most(before).1, sum_and_most(after).1);
    let most = if above > below { above } else { below };
    let to_count = most.get();
    if to_count <= count_threshold {
        return None;
    }
    let reason = Reason {
        to_count,
        home_count: Some(home_count),
        count_threshold,
        evidence: all.get(),
        regardless: false,
        partner: None,
    };
    node_with(counts, most, home).map(|to| (to, reason))
}
