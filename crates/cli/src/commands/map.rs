//! `nodewise map`: writes the decision of a policy as a portable, readable file of rules.

use crate::exit::Outcome;
use crate::output::{self, say, write_file};
use crate::selection::{self, tell};
use anyhow::bail;
use nodewise_analysis::Assignment;
use nodewise_pipeline::{ASYM, Asym};
use nodewise_placement::{Placement, recognise};
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
        true => Some(Asym::enter(&mut selected, None)?),
        false => None,
    };
    let (mut mappings, notes) = selected.mappings(&arguments.policy)?;
    tell(&notes);
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
        asym.leave(&mut selected, mapping, asym.best(&choices[0]));
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
    if let Some(warning) = dependence(&recognised.placement) {
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

/// A share of accesses that is worth a word.
const NOTICEABLE: f64 = 0.02;

/// What a map by thread numbers is worth where threads take other parts in each run.
fn dependence(placement: &Placement) -> Option<String> {
    let other = placement.kept.other_runs?;
    let (number, data) = (percent(other.by_number), percent(other.by_data));
    let how = match other.assignment {
        Assignment::Fixed => return None,
        Assignment::Arrival => "take their parts in order of arrival",
        Assignment::Dynamic => "take work as it comes",
    };
    let first = percent(other.first_touch);
    Some(format!(
        "threads {how}: in another run this map keeps {number} of the accesses local by their numbers, {data} at most by data; \
         first touch {first}{}",
        match other.by_number.max(other.by_data) < other.first_touch - NOTICEABLE {
            true => ", so leave it alone",
            false => "",
        }
    ))
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
