//! Which predicted gains justify a change.

use nodewise_simulation::{MEMORY_BOUND, Prediction, Scenario, Simulation, Varied};

/// A typical gain below this is not worth a change.
pub const WORTH_IT: f64 = 0.03;
/// A stock command this close to the best placement is preferred to it.
pub const CLOSE: f64 = 0.02;

/// Predictions worth a change, fastest first: a typical gain, no loss in any scenario, and not chance.
pub(crate) fn worth_it(simulation: &Simulation) -> Vec<&Prediction> {
    let pays = |p: &Prediction| p.speedup.typical >= 1.0 + WORTH_IT && p.speedup.min >= 1.0;
    let mut ranked = simulation.ranked();
    ranked.retain(|p| pays(p) && !p.policy.starts_with("random"));
    ranked
}

/// What one scenario says: whether a placement would be worth a change if its values were the true ones.
pub(crate) struct Opinion {
    /// The uncertain quantity it sets to an end of its range.
    pub varied: Varied,
    /// The largest gain of a placement that is not random: speed-up minus one.
    pub gain: f64,
    /// Whether memory matters at all, and the gain is worth a change.
    pub acts: bool,
}

/// Each scenario's opinion; the typical one comes first.
pub(crate) fn opinions(simulation: &Simulation) -> Vec<Opinion> {
    let placements = || {
        let all = simulation.predictions.iter();
        all.filter(|p| !p.policy.starts_with("random"))
    };
    let opinion = |(s, scenario): (usize, &Scenario)| {
        let gain = placements()
            .map(|p| p.by_scenario[s].speedup - 1.0)
            .fold(0.0, f64::max);
        let bound = simulation.baseline().by_scenario[s].memory_share >= MEMORY_BOUND;
        Opinion {
            varied: scenario.varied,
            gain,
            acts: bound && gain >= WORTH_IT,
        }
    };
    simulation.scenarios.iter().enumerate().map(opinion).collect()
}

/// Share of the baseline's time that the best placement is predicted to save.
pub(crate) fn saved(simulation: &Simulation) -> f64 {
    let best = worth_it(simulation).into_iter().next();
    best.filter(|_| simulation.is_memory_bound())
        .map_or(0.0, |best| 1.0 - 1.0 / best.speedup.typical)
}
