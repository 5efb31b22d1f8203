//! When a page's accesses say that it should leave its home.

use super::Reason;
use nodewise_machine::NodeId;

/// Where to, and why; `None` stays.
pub type Judgement = Option<(NodeId, Reason)>;

/// The sum and the largest of some counts.
fn sum_and_most(counts: &[f64]) -> (f64, f64) {
    let add = |(sum, most): (f64, f64), &c: &f64| (sum + c, if c > most { c } else { most });
    counts.iter().fold((0.0, 0.0), add)
}

/// The first node, other than `home`, with this many accesses.
fn node_with(counts: &[f64], count: f64, home: NodeId) -> Option<NodeId> {
    let nodes = (0..counts.len() as u32).map(NodeId);
    nodes.filter(|n| *n != home).find(|n| counts[n.index()] >= count)
}

/// To the remote node with the most accesses, if they exceed `threshold` times the average of the
/// remote nodes' (ARS 3.2 and 4).
///
/// "The difference between the biggest remote accesses and the average exceeds a threshold […] of two
/// times of the average", read literally, is `max − average > 2 × average`, which cannot hold for the
/// three remote nodes of the paper: `max` is at most the sum, three averages. So we read
/// `max > 2 × average`, which on four nodes is one remote node with more than twice what the two
/// others have together. The home's own count is not looked at and has to be 0.
#[must_use]
pub fn against_remote(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
    let (evidence, to_count) = sum_and_most(counts);
    let against = threshold * evidence / (counts.len() - 1) as f64;
    if to_count <= against || counts.len() < 2 {
        return None;
    }
    let reason = Reason {
        to_count,
        home_count: None,
        against,
        evidence,
    };
    node_with(counts, to_count, home).map(|to| (to, reason))
}

/// To the remote node with the most accesses, if they exceed the average of the remote nodes' by more
/// than `constant`, which is the same for all pages of a home.
///
/// The other reading of ARS 3.2 and 4: "the difference between the biggest remote accesses and the
/// average exceeds a threshold", a "constant threshold of two times of the average references performed
/// to a page", where the latter average is over pages. A page that one remote node uses now and then does
/// not go, however little the others use it.
#[must_use]
pub fn against_all(home: NodeId, counts: &[f64], constant: f64) -> Judgement {
    let (evidence, to_count) = sum_and_most(counts);
    let against = evidence / (counts.len() - 1) as f64 + constant;
    let reason = Reason {
        to_count,
        home_count: None,
        against,
        evidence,
    };
    let to = (to_count > against).then(|| node_with(counts, to_count, home));
    to.flatten().map(|to| (to, reason))
}

/// To the remote node with the most accesses, if they exceed `threshold` times the home's (ARS 4: "the
/// greatest access number will not be compared with the average accesses […] but with the local
/// references").
#[must_use]
pub fn against_local(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
    let home_count = counts[home.index()];
    let (before, after) = (&counts[..home.index()], &counts[home.index() + 1..]);
    let (below, above) = (sum_and_most(before), sum_and_most(after));
    let to_count = below.1.max(above.1);
    let against = threshold * home_count;
    if to_count <= against {
        return None;
    }
    let reason = Reason {
        to_count,
        home_count: Some(home_count),
        against,
        evidence: below.0 + above.0 + home_count,
    };
    node_with(counts, to_count, home).map(|to| (to, reason))
}
