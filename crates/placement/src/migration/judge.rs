//! When a page's accesses say that it should leave its home.

use super::Reason;
use nodewise_machine::NodeId;

/// Where to, and why; `None` stays.
pub type Judgement = Option<(NodeId, Reason)>;

/// The remote node with the most accesses, the lowest-numbered of equals.
fn most_remote(home: NodeId, counts: &[f64]) -> Option<(NodeId, f64)> {
    let mut best: Option<(NodeId, f64)> = None;
    for (node, &count) in counts.iter().enumerate() {
        if node != home.index() && best.is_none_or(|b| count > b.1) {
            best = Some((NodeId(node as u32), count));
        }
    }
    best
}

/// To the remote node with the most accesses, if they exceed `threshold` times the average of the
/// remote nodes' (ARS 3.2 and 4).
///
/// "The difference between the biggest remote accesses and the average exceeds a threshold […] of two
/// times of the average", read literally, is `max − average > 2 × average`, which cannot hold for the
/// three remote nodes of the paper: `max` is at most the sum, three averages. So we read
/// `max > 2 × average`, which on four nodes is one remote node with more than twice what the two
/// others have together.
#[must_use]
pub fn against_remote(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
    let (to, to_count) = most_remote(home, counts)?;
    let evidence = counts.iter().sum::<f64>() - counts[home.index()];
    let against = threshold * evidence / (counts.len() - 1) as f64;
    let reason = Reason {
        to_count,
        home_count: None,
        against,
        evidence,
    };
    (to_count > against).then_some((to, reason))
}

/// To the remote node with the most accesses, if they exceed `threshold` times the home's (ARS 4: "the
/// greatest access number will not be compared with the average accesses […] but with the local
/// references").
#[must_use]
pub fn against_local(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
    let (to, to_count) = most_remote(home, counts)?;
    let home_count = counts[home.index()];
    let against = threshold * home_count;
    let reason = Reason {
        to_count,
        home_count: Some(home_count),
        against,
        evidence: counts.iter().sum(),
    };
    (to_count > against).then_some((to, reason))
}
