//! `nodewise simulate`: the predicted cost of each policy, side by side.

mod json;
mod moving;
mod nodes;
mod several;
mod show;
mod sweep;
mod table;

use crate::asym::{ASYM, Asym};
use crate::exit::Outcome;
use crate::fold::folded;
use crate::output;
use crate::selection::{Selected, Selection};
use crate::threads::{OfPrograms, of_programs};
use anyhow::bail;
use moving::Limits;
use nodes::Worth;
use nodewise_machine::Machine;
use nodewise_simulation::{Moving, Parameters, Simulation, Traffic, simulate_moving, with_latency_ratio};
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
    /// More profiles: their programs run at the same time, each on nodes of its own (`--threads asym`)
    #[arg(value_name = "DIR")]
    more: Vec<PathBuf>,
    /// Of several programs, those that end begin again until all have ended once; else they leave the links to the others
    #[arg(long, requires = "more")]
    repeat: bool,
    /// Policies, comma-separated: `all`, names, `mixed:0.8..0.99` for a sweep; `balance:out-w` and the
    /// like move pages between slices (`balance:all`: each of them), `replay` moves what the profile says was moved
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    /// Run on this many CPUs (neighbouring threads of the recording share one), under a thread policy, or both:
    /// 24, scatter, 24,asym; of several programs 24,24,16,asym. With `asym` each policy gets the nodes it is fastest on
    #[arg(long, value_name = "N|T|N,T", value_parser = of_programs)]
    threads: Option<OfPrograms>,
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
    if !arguments.more.is_empty() {
        return several::run(arguments, &machines);
    }
    let mut done = Vec::new();
    for machine in machines {
        let selected = open(arguments, machine)?;
        if let Some(policy) = &arguments.sweep {
            return sweep(policy, &selected, arguments);
        }
        done.push(predict(selected, arguments)?);
    }
    if arguments.json {
        let all: Vec<_> = done
            .iter()
            .map(|d| json::OnMachine::new(&d.machine, d.page_size, &d.simulation, d.worth.as_ref()))
            .collect();
        output::print(&one_or_all(&all)?)?;
    } else {
        let tables: Vec<_> = done.iter().map(Done::table).collect();
        output::print(&tables.join("\n"))?;
    }
    Ok(Outcome::Done)
}

/// One machine's object, or an array of them.
fn one_or_all<T: serde::Serialize>(all: &[T]) -> anyhow::Result<String> {
    let text = match all {
        [one] => serde_json::to_string_pretty(one)?,
        several => serde_json::to_string_pretty(several)?,
    };
    Ok(text + "\n")
}

/// Everything predicted on one machine.
struct Done {
    machine: Machine,
    page_size: u64,
    simulation: Simulation,
    /// What the choice of nodes is worth, where there was one.
    worth: Option<Worth>,
}

impl Done {
    fn table(&self) -> String {
        let worth = self.worth.as_ref().map_or_else(String::new, Worth::table);
        table::write(&self.machine, &self.simulation, &worth)
    }
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
    let mut selection = Selection {
        machine: machine.to_owned(),
        ..arguments.selection.clone()
    };
    if let Some(policy) = policy(arguments) {
        policy.clone_into(&mut selection.affinity);
    }
    let mut selected = selection.open()?;
    if let Some(ratio) = arguments.latency_ratio {
        selected.machine = with_latency_ratio(&selected.machine, ratio);
    }
    if let Some(cpus) = count(arguments)? {
        selected.affinity = folded(&selected, &selection.affinity, cpus)?;
    }
    Ok(selected)
}

/// How many threads are asked for.
fn count(arguments: &Arguments) -> anyhow::Result<Option<u32>> {
    arguments.threads.as_ref().map_or(Ok(None), |t| t.count(0, 1))
}

/// Which thread policy is asked for by `--threads`.
fn policy(arguments: &Arguments) -> Option<&str> {
    arguments.threads.as_ref()?.policy.as_deref()
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
fn predict(mut selected: Selected, arguments: &Arguments) -> anyhow::Result<Done> {
    let parameters = parameters(arguments);
    let asym = match policy(arguments).unwrap_or(&arguments.selection.affinity) {
        ASYM => Some(Asym::enter(&mut selected, count(arguments)?)?),
        _ => None,
    };
    let list = moving::split(&format!("{},{}", arguments.limits.start, arguments.policy));
    let mappings = selected.mappings(&list.pages)?;
    let movers = Movers {
        arguments,
        selected: &selected,
        list: &list,
        parameters: &parameters,
    };
    let (simulation, worth) = match &asym {
        None => {
            let context = selected.context();
            let moving = movers.all()?;
            (
                simulate_moving(&context, &mappings, moving, &selected.reader, &parameters)?,
                None,
            )
        }
        Some(asym) => {
            let (simulation, worth) = nodes::together(asym, &movers, &mappings)?;
            (simulation, Some(worth))
        }
    };
    if let Some(file) = &arguments.svg {
        let machine = asym.as_ref().map_or(&selected.machine, |a| &a.machine);
        let picture = show::draw(machine, &selected, &mappings[0], &simulation);
        output::write_file(file, &picture, arguments.force)?;
    }
    Ok(Done {
        page_size: selected.histogram.page_size(),
        machine: asym.map_or(selected.machine, |a| a.machine),
        simulation,
        worth,
    })
}

/// Policies that move pages, made anew for each pass.
struct Movers<'a> {
    arguments: &'a Arguments,
    selected: &'a Selected,
    list: &'a moving::Split,
    parameters: &'a Parameters,
}

impl Movers<'_> {
    fn one(&self, policy: &str) -> anyhow::Result<Moving> {
        self.arguments
            .limits
            .moving(policy, self.selected, self.parameters)
    }

    fn all(&self) -> anyhow::Result<Vec<Moving>> {
        let moving = self.list.moving.iter().map(|p| self.one(p));
        let mut moving = moving.collect::<anyhow::Result<Vec<_>>>()?;
        if self.arguments.svg.is_some() {
            let [one] = moving.as_mut_slice() else {
                bail!("--svg draws one policy that moves pages: --policy balance:out-w, or --policy replay");
            };
            one.traced = true;
        }
        Ok(moving)
    }
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
