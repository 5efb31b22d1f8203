//! `nodewise simulate`: the predicted cost of each policy, side by side.

mod fold;
mod json;
mod moving;
mod show;
mod sweep;
mod table;

use crate::exit::Outcome;
use crate::output;
use crate::selection::{Selected, Selection};
use anyhow::bail;
use moving::Limits;
use nodewise_simulation::{Parameters, Simulation, Traffic, simulate_moving, with_latency_ratio};
use std::path::PathBuf;

/// What `--machine papers` stands for.
const PAPERS: &str = "itanium-9030,xeon-x7550,opteron-6386,machine-a,mai-itanium2-fss,mai-opteron-8n,\
                      sci-cluster-4,nehalem-2s,westmere-4s";

const MACHINE: &str =
    "Machines, comma-separated: shipped names, files, `this`; `papers` for all of the papers'";

#[derive(clap::Args)]
#[command(mut_arg("machine", |a| a.help(MACHINE).value_name("M,…")))]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Policies, comma-separated: `all`, names, `mixed:0.8..0.99` for a sweep; `balance:out-w` and the
    /// like move pages between slices (`balance:all`: each of them), `replay` moves what the profile says was moved
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    /// Run on this many CPUs: neighbouring threads of the recording share one
    #[arg(long, value_name = "T")]
    threads: Option<u32>,
    /// CPU time of a plain run of the same work: nothing is then assumed about the cost of recording
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    plain_cpu: Option<f64>,
    #[command(flatten)]
    limits: Limits,
    /// Make remote memory so many times as slow as local memory, and its bandwidth less in proportion
    #[arg(long, value_name = "R", value_parser = positive)]
    latency_ratio: Option<f64>,
    /// What reaches memory: `lines` behind caches, or all `accesses`, as where remote memory is not cached
    #[arg(long, value_name = "WHAT", default_value = "lines", value_parser = traffic)]
    traffic: Traffic,
    /// How much a balance policy depends on its parameters and the limits below: one at a time
    #[arg(long, value_name = "balance:P", conflicts_with = "policy")]
    sweep: Option<String>,
    /// Draw where the one balance policy or `replay` has each page through time, or the sweep
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long, requires = "svg")]
    force: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let machines = arguments.selection.machine.replace("papers", PAPERS);
    let machines: Vec<_> = machines.split(',').map(str::trim).collect();
    if machines.len() > 1 && (arguments.svg.is_some() || arguments.sweep.is_some()) {
        bail!("--svg and --sweep are about one machine; name one with --machine");
    }
    let mut done = Vec::new();
    for machine in machines {
        let selected = open(arguments, machine)?;
        if let Some(policy) = &arguments.sweep {
            return sweep(policy, &selected, arguments);
        }
        let simulation = predict(&selected, arguments)?;
        done.push((selected.machine, selected.histogram.page_size(), simulation));
    }
    if arguments.json {
        let all: Vec<_> = done
            .iter()
            .map(|(m, size, s)| json::OnMachine::new(m, *size, s))
            .collect();
        let text = match all.as_slice() {
            [one] => serde_json::to_string_pretty(one)?,
            several => serde_json::to_string_pretty(several)?,
        };
        output::print(&(text + "\n"))?;
    } else {
        let tables: Vec<_> = done.iter().map(|(m, _, s)| table::write(m, s)).collect();
        output::print(&tables.join("\n"))?;
    }
    Ok(Outcome::Done)
}

fn sweep(policy: &str, selected: &Selected, arguments: &Arguments) -> anyhow::Result<Outcome> {
    let done = sweep::sweep(policy, &arguments.limits, selected, &parameters(arguments))?;
    if let Some(file) = &arguments.svg {
        output::write_file(file, &done.svg(), arguments.force)?;
    }
    output::print(&if arguments.json { done.json()? } else { done.text() })?;
    Ok(Outcome::Done)
}

/// The profile on a machine whose remote memory may be nearer or farther than it is.
fn open(arguments: &Arguments, machine: &str) -> anyhow::Result<Selected> {
    let selection = Selection {
        machine: machine.to_owned(),
        ..arguments.selection.clone()
    };
    let mut selected = selection.open()?;
    if let Some(ratio) = arguments.latency_ratio {
        selected.machine = with_latency_ratio(&selected.machine, ratio);
    }
    if let Some(cpus) = arguments.threads {
        selected.affinity = fold::folded(&selected, &selection.affinity, cpus)?;
    }
    Ok(selected)
}

fn parameters(arguments: &Arguments) -> Parameters {
    Parameters {
        plain_cpu_ns: arguments.plain_cpu.map(|seconds| seconds * 1e9),
        seconds_per_gb: arguments.limits.migration_cost,
        traffic: arguments.traffic,
        ..Parameters::default()
    }
}

/// Simulates a list of policies; what pages start from comes first, asked for or not.
fn predict(selected: &Selected, arguments: &Arguments) -> anyhow::Result<Simulation> {
    let Arguments { limits, .. } = arguments;
    let parameters = parameters(arguments);
    let list = moving::split(&format!("{},{}", limits.start, arguments.policy));
    let mappings = selected.mappings(&list.pages)?;
    let moving = list
        .moving
        .iter()
        .map(|p| limits.moving(p, selected, &parameters));
    let mut moving = moving.collect::<anyhow::Result<Vec<_>>>()?;
    if arguments.svg.is_some() {
        let [one] = moving.as_mut_slice() else {
            bail!("--svg draws one policy that moves pages: --policy balance:out-w, or --policy replay");
        };
        one.traced = true;
    }
    let context = selected.context();
    let simulation = simulate_moving(&context, &mappings, moving, &selected.reader, &parameters)?;
    if let Some(file) = &arguments.svg {
        output::write_file(
            file,
            &show::draw(selected, &mappings[0], &simulation),
            arguments.force,
        )?;
    }
    Ok(simulation)
}

fn traffic(text: &str) -> Result<Traffic, String> {
    match text {
        "lines" => Ok(Traffic::Lines),
        "accesses" => Ok(Traffic::Accesses),
        _ => Err("`lines` or `accesses`".into()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|n| n.is_finite() && *n > 0.0)
        .ok_or_else(|| "a number above 0".into())
}
