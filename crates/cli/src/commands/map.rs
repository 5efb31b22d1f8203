//! `nodewise map`: writes the decision of a policy as a portable, readable file of rules.

use crate::exit::Outcome;
use crate::output::{self, say, write_file};
use crate::selection::{self, print_notes};
use anyhow::bail;
use nodewise_analysis::{Assignment, Roles, shared_counters};
use nodewise_pipeline::{ASYM, Asym};
use nodewise_placement::{Distribution, OtherRuns, Placement, Rule, recognise};
use nodewise_profile::Profile;
use nodewise_report::{percent, plural};
use nodewise_simulation::Parameters;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// The policy, such as locality, mixed:0.9, balanced, ./my-policy.so
    #[arg(long, value_name = "P")]
    policy: String,
    /// Where to write the map; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    output::check_new([&arguments.output], arguments.force)?;
    let mut selected = arguments.selection.selection().open()?;
    let asym = match arguments.selection.affinity == ASYM {
        true => Some(Asym::to_virtual(&mut selected, None)?),
        false => None,
    };
    let (mut mappings, notes) = selected.mappings(&arguments.policy)?;
    print_notes(&notes);
    let [mapping] = mappings.as_mut_slice() else {
        bail!(
            "`{}` names {} policies; a map holds one",
            arguments.policy,
            mappings.len()
        );
    };
    if let Some(asym) = asym {
        let one = std::slice::from_ref(&*mapping);
        let choices = asym.survey(&selected, one, Vec::new(), &Parameters::default())?;
        asym.to_real(&mut selected, mapping, asym.best(&choices[0]));
    }
    let recognised = recognise(&selected.context(), mapping);
    write_file(&arguments.output, &recognised.to_toml(), arguments.force)?;
    if selected.machine.node_count() < 2 {
        say!(
            "decided for one node ({}): there is nothing to place; name the machine you mean, \
             such as --machine epyc-2s-nps4",
            selected.machine.name
        );
    }
    say!("{}", summary(&recognised.placement));
    if let Some(warning) = dependence(&recognised.placement, selected.profile()) {
        say!("{warning}");
    }
    Ok(Outcome::Done)
}

/// A summary of the rules in one line.
fn summary(placement: &Placement) -> String {
    if !placement.decides_anything() {
        return format!(
            "{}: no rules: the kernel's first touch does what it wants",
            placement.policy
        );
    }
    let runs: usize = placement.rules.iter().map(|r| r.runs.len()).sum();
    let kept = placement.kept;
    let exceptions = match runs {
        0 => String::new(),
        1 => format!(
            ", {} without the 1 run of pages",
            percent(kept.transferable_local)
        ),
        _ => format!(
            ", {} without the {runs} runs of pages",
            percent(kept.transferable_local)
        ),
    };
    format!(
        "{}: {}; {} of accesses local under them, {} under the full mapping{exceptions}",
        placement.policy,
        plural(placement.rules.len(), "rule"),
        percent(kept.rules_local),
        percent(kept.mapping_local),
    )
}

/// Smallest share of accesses that is mentioned.
const MIN_SHARE_MENTIONED: f64 = 0.02;

/// A warning if threads take other parts of the data in each run, so that a map by thread numbers loses its benefit, or
/// if that is unknown.
fn dependence(placement: &Placement, profile: &Profile) -> Option<String> {
    let Some(other) = placement.kept.other_runs else {
        let asks = placement.decides_anything() && !Roles::is_by_number(profile);
        return asks.then(|| unknown(profile));
    };
    let number = percent(other.by_number);
    let data = match percent(other.by_data) {
        data if data == number => String::new(),
        data => format!(", {data} by data"),
    };
    let how = match other.assignment {
        Assignment::Fixed => {
            return Roles::may_be_fixed_by_chance(profile).then(|| {
                "threads took the same parts in the other run, or came in the same order there by chance: `record --repeat 2` tells"
                    .to_owned()
            });
        }
        Assignment::Arrival if other.assumed => {
            "each take a number from a shared counter; if that chooses their parts"
        }
        Assignment::Arrival => "take their parts in order of arrival",
        Assignment::Dynamic => "take work as it comes",
    };
    let first = percent(other.first_touch);
    let separator = if other.assumed { "," } else { ":" };
    Some(format!(
        "threads {how}{separator} in another run this map keeps {number} of the accesses local by their numbers{data}; first \
         touch {first}{}",
        match (
            placement.decides_anything() && is_pointless(other, placement),
            other.assumed
        ) {
            (true, false) => ", so leave it alone",
            (_, true) => "; `record --repeat 2` tells",
            _ => "",
        }
    ))
}

/// Whether the map is to be left alone: another run is expected to lose against first touch, or the map places data by threads
/// that take work as it comes, of whom the runs compared do not tell who takes what in another one.
fn is_pointless(other: OtherRuns, placement: &Placement) -> bool {
    let by_threads = |rule: &Rule| {
        !matches!(
            rule.distribution,
            Distribution::Interleave(_) | Distribution::Dealt(_)
        )
    };
    let gain = other.by_number.max(other.by_data) - other.first_touch;
    match other.assignment {
        Assignment::Dynamic => placement.rules.iter().any(by_threads),
        Assignment::Fixed | Assignment::Arrival => gain < -MIN_SHARE_MENTIONED,
    }
}

/// The warning if only one run was recorded, so that it is unknown whether threads take the same parts in each run.
fn unknown(profile: &Profile) -> String {
    let remedy = nodewise_report::what_tells(profile);
    let counters = shared_counters(profile);
    let drawn = counters
        .iter()
        .find(|c| c.again > 1)
        .and_then(|c| profile.site(c.site)?.own());
    let drawn = drawn.map_or_else(String::new, |at| {
        format!(", and threads take numbers from the counter at {at} again and again")
    });
    format!(
        "the map binds data to thread numbers; whether another run's threads take the same parts is not known{drawn}: {remedy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn almost_all_is_not_called_all() {
        let text = "format = 1\npolicy = \"locality\"\nmachine = \"m\"\nnodes = 2\nprogram = \"p\"\nthreads = 2\n\
                    page_size = 4096\ndefault = \"interleave 0,1\"\n[kept]\nmapping_local = 0.9999\n\
                    rules_local = 0.9998\ntransferable_local = 1.0\n[binding]\nname = \"compact\"\ncpus = [0, 1]\nnodes = [0, 1]\n";
        let placement = Placement::read(text).unwrap();
        assert_eq!(
            summary(&placement),
            "locality: 0 rules; 99.9 % of accesses local under them, 99.9 % under the full mapping"
        );
    }
}
