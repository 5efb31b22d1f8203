//! Which predicted gains justify a change.

use nodewise_simulation::{Prediction, Simulation};

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

/// Share of the baseline's time that the best placement is predicted to save.
pub(crate) fn saved(simulation: &Simulation) -> f64 {
    let best = worth_it(simulation).into_iter().next();
    best.filter(|_| simulation.is_memory_bound())
        .map_or(0.0, |best| 1.0 - 1.0 / best.speedup.typical)
}
