//! Options of the policies that move pages while a profile is simulated.

use crate::arguments::{cost, share_or_none};
use nodewise_control::Settings;
use nodewise_pipeline::compare;
use nodewise_simulation::Parameters;

/// The heading of options about moving pages. Given with each option: `next_help_heading` would be that of the options
/// after these as well.
pub const MOVING: &str = "Moving pages between slices (balance:P, replay)";

/// Limits that apply to all policies that move pages.
#[derive(clap::Args, Clone, Debug)]
pub struct Limits {
    /// Slices between decisions of balance policies
    #[arg(long, value_name = "SLICES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = MOVING)]
    decide_every: u32,
    /// Intervals after which what balance policies have counted is halved; 0 never
    #[arg(long, value_name = "INTERVALS", default_value_t = Settings::default().half_life, help_heading = MOVING)]
    half_life: u32,
    /// Largest share of the run time that moving pages may take, or `none`
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share_or_none, help_heading = MOVING)]
    migrate_budget: f64,
    /// Seconds per 10⁹ bytes moved, added to the time that copying takes at the bandwidth between the nodes
    #[arg(long, value_name = "SECONDS", default_value_t = Parameters::default().seconds_per_gb, value_parser = cost, help_heading = MOVING)]
    migration_cost: f64,
    /// Cooldown: intervals before a moved page may move again; doubled after each further move
    #[arg(long, value_name = "INTERVALS", default_value_t = Settings::default().cooldown, help_heading = MOVING)]
    cooldown: u32,
    /// Minimum accesses to a page before a decision about it
    #[arg(long, value_name = "K", default_value_t = Settings::default().minimum_samples, help_heading = MOVING)]
    minimum_samples: u32,
}

impl Limits {
    /// The limits, for pages that begin where they are first touched.
    pub fn of(&self) -> compare::Limits {
        compare::Limits {
            interval: self.decide_every,
            half_life: self.half_life,
            budget: self.migrate_budget,
            migration_cost: self.migration_cost,
            cooldown: self.cooldown,
            minimum_samples: self.minimum_samples,
            ..compare::Limits::default()
        }
    }
}
