//! Which predicted gains justify a change.

use nodewise_simulation::{MEMORY_BOUND, Prediction, Scenario, Simulation, Varied};

/// Smallest typical gain that is worth a change.
pub const MIN_GAIN: f64 = 0.03;
/// Smallest loss that is said to be one; less is not printed as a percentage above zero.
pub(crate) const SOME_LOSS: f64 = 0.005;
/// A stock command is preferred if it is at most this much slower than the best placement.
pub const MAX_STOCK_SLOWDOWN: f64 = 0.02;

/// Largest loss of local fraction in another run, in which threads may take other parts, with which a placement still
/// counts as valid.
const MAX_LOCALITY_LOSS: f64 = 0.05;

/// The predictions that are worth a change, fastest first: they have a typical gain, no loss in any scenario, are not
/// random, and remain valid in other runs.
pub(crate) fn worth_it(simulation: &Simulation) -> Vec<&Prediction> {
    paying(simulation).filter(|p| is_valid_in_other_runs(p)).collect()
}

/// The fastest prediction that pays in the recorded run only.
pub(crate) fn pays_once(simulation: &Simulation) -> Option<&Prediction> {
    paying(simulation).find(|p| !is_valid_in_other_runs(p))
}

/// The predictions that pay in the recorded run and are not random, fastest first.
fn paying(simulation: &Simulation) -> impl Iterator<Item = &Prediction> {
    let pays = |p: &&Prediction| p.speedup.typical >= 1.0 + MIN_GAIN && p.speedup.min >= 1.0;
    let ranked = simulation.ranked().into_iter().filter(pays);
    ranked.filter(|p| !p.policy.starts_with("random"))
}

/// Whether another run keeps the predicted local fraction where `run` binds threads by the data that they take, if it can.
#[must_use]
pub fn is_valid_in_other_runs(p: &Prediction) -> bool {
    p.other_runs
        .is_none_or(|other| other.all.by_data >= p.local_fraction - MAX_LOCALITY_LOSS)
}

/// Result of one scenario: whether a placement would be worth a change if the scenario's values were the true ones.
pub(crate) struct ScenarioOutcome {
    /// The uncertain quantity that the scenario sets to an end of its range.
    pub varied: Varied,
    /// The largest gain of a placement that is not random, or of matching loops to their data: speed-up minus one.
    pub gain: f64,
    /// Whether the program is bound by memory, and the gain is worth a change.
    pub recommends_change: bool,
}

/// The predictions that advice may be based on: those of placements that are not random and remain valid in other runs.
fn candidates(simulation: &Simulation) -> impl Iterator<Item = &Prediction> {
    let all = simulation.predictions.iter();
    all.filter(|p| is_valid_in_other_runs(p) && !p.policy.starts_with("random"))
}

/// The result of each scenario; the typical one comes first. `matching` are the speed-ups of matched loops in each, if
/// loops can be matched.
pub(crate) fn scenario_outcomes(simulation: &Simulation, matching: Option<&[f64]>) -> Vec<ScenarioOutcome> {
    let outcome = |(s, scenario): (usize, &Scenario)| {
        let gain = candidates(simulation)
            .map(|p| p.by_scenario[s].speedup)
            .chain(matching.map(|speedups| speedups[s]))
            .fold(1.0, f64::max)
            - 1.0;
        let bound = simulation.baseline().by_scenario[s].memory_share >= MEMORY_BOUND;
        ScenarioOutcome {
            varied: scenario.varied,
            gain,
            recommends_change: bound && gain >= MIN_GAIN,
        }
    };
    simulation.scenarios.iter().enumerate().map(outcome).collect()
}

/// The prediction that gains most where all uncertain quantities are at ends of their ranges together, with its gain,
/// among those that are not random and remain valid in other runs; `None` if memory hardly matters there, or nothing
/// gains enough.
pub(crate) fn largest_joint_gain(simulation: &Simulation) -> Option<(&Prediction, f64)> {
    let gain = |p: &Prediction| joint_gain(simulation, p.jointly.iter().map(|cost| cost.speedup));
    let gains = candidates(simulation).map(|p| (p, gain(p)));
    gains
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, gain)| *gain >= MIN_GAIN)
}

/// The largest gain of a change with these speed-ups where all uncertain quantities are at ends of their ranges, without
/// those where memory hardly matters.
pub(crate) fn joint_gain(simulation: &Simulation, speedups: impl Iterator<Item = f64>) -> f64 {
    let ends = speedups.zip(&simulation.baseline().jointly);
    let bound = ends.filter(|(_, first)| first.memory_share >= MEMORY_BOUND);
    bound.map(|(speedup, _)| speedup).fold(1.0, f64::max) - 1.0
}

/// Share of the baseline's time that the best placement is predicted to save.
pub(crate) fn saved(simulation: &Simulation) -> f64 {
    let best = worth_it(simulation).into_iter().next();
    best.filter(|_| simulation.is_memory_bound())
        .map_or(0.0, |best| 1.0 - 1.0 / best.speedup.typical)
}
