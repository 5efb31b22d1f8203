//! Step 2 of AsymSched: the placement of highest weighted bandwidth.

use super::bound;
use super::enumeration::{Arrangement, Enumerated, Enumeration};
use super::local_search::LocalSearch;
use super::node_assignment::placement;
use super::problem::Problem;
use super::result::{Counts, SearchResult};
use super::{AsymError, Cluster, Place};
use nodewise_machine::Channels;

/// Parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A placement is good if it has at least this share of the best P_wbw, 0 to 1: 0.9 (AsymSched 4.2, step 3).
    pub keep: f64,
    /// Effort of a search that cannot be exhaustive, in channels crossed by flows whose rates are computed. `None`: the
    /// limit for a decision, which is 10 ms on 16 nodes and 100 ms on 64.
    pub effort: Option<usize>,
    /// Seed of the random numbers of local search.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keep: 0.9,
            effort: None,
            seed: 0,
        }
    }
}

/// Up to this number of partitions of nodes, all are enumerated (eight nodes have at most 840).
const MAX_ENUMERATED: f64 = 2_000.0;
/// Largest number of sets of one size for which branch and bound is tried.
const MAX_SETS: f64 = 600.0;

/// The effort of a decision, such that it takes at most 10 ms on 16 nodes and 100 ms on 64.
fn decision_effort(nodes: usize) -> usize {
    700 * (nodes + 4).pow(2)
}

/// The best placement of clusters on these nodes, and all that are nearly as good.
///
/// Exact on eight nodes, and wherever branch and bound ends within the effort; beyond that the best that
/// local search finds, with a bound on what it may have missed.
///
/// # Errors
/// One line: more clusters than nodes, no node left, nodes that no links join or that the machine does not have, an
/// invalid weight or share.
pub fn search<'a>(
    channels: &'a Channels,
    places: &[Place],
    clusters: &'a [Cluster],
    options: &Options,
) -> Result<SearchResult<'a>, AsymError> {
    if !(0.0..=1.0).contains(&options.keep) {
        let keep = options.keep;
        return Err(AsymError(format!(
            "placements are good from a share of the best on, 0 to 1, not {keep}"
        )));
    }
    let problem = Problem::new(channels, places, clusters)?;
    let few = problem.partitions() <= MAX_ENUMERATED;
    Ok(found(problem, few, options))
}

/// Searches exhaustively where partitions are `few`, otherwise within the effort.
pub(super) fn found<'a>(problem: Problem<'a>, few: bool, options: &Options) -> SearchResult<'a> {
    let (mut found, upper_bound) = if few {
        everything(&problem, options)
    } else {
        most(&problem, options)
    };
    let best = found.kept.iter().max_by(|a, b| a.weighted.total_cmp(&b.weighted));
    let best = best.expect("a problem that was checked has a placement").clone();
    let names: Vec<usize> = (0..best.sets.len()).collect();
    let good = |a: &Arrangement| a.weighted >= options.keep * best.weighted * (1.0 - 1e-9);
    found.kept.retain(good);
    SearchResult {
        best: placement(&problem, &best, &names),
        weighted: best.weighted,
        upper_bound: if found.complete {
            best.weighted
        } else {
            upper_bound.max(best.weighted)
        },
        exact: found.complete,
        // If only the best placements are good, equal ones are not enumerated.
        all_good_known: few && options.keep < 1.0,
        counts: Counts::new(problem.possible(), found.computed),
        kept: found.kept,
        keep: options.keep,
        problem,
    }
}

/// Exhaustive search. Returns its result and the upper bound.
fn everything(problem: &Problem<'_>, options: &Options) -> (Enumerated, f64) {
    let all = Enumeration::new(problem, f64::INFINITY).expect("any number of sets");
    (all.run(options.keep, Vec::new(), usize::MAX), f64::INFINITY)
}

/// Local search, followed by branch and bound for anything better.
fn most(problem: &Problem<'_>, options: &Options) -> (Enumerated, f64) {
    let nodes = problem.nodes.len();
    let effort = options.effort.unwrap_or(decision_effort(nodes));
    let upper_bound = bound::of_all_placements(problem);
    let mut local_search = LocalSearch::new(problem, options.seed, effort, upper_bound);
    let mut known = local_search.run();
    let best = known.iter().map(|a| a.weighted).fold(0.0, f64::max);
    known.extend(local_search.near_current(best * options.keep));
    let complete = best >= upper_bound * (1.0 - 1e-9);
    let mut found = match Enumeration::new(problem, MAX_SETS).filter(|_| !complete) {
        Some(all) => all.run(1.0, known, effort / 16),
        None => Enumerated {
            kept: known,
            complete,
            computed: 0,
        },
    };
    found.computed += local_search.computed;
    (found, upper_bound)
}
