//! `nodewise simulate`: predicts the cost of each policy, side by side.

// Why: docs/decisions/structure.md

use crate::arguments::{cost, duration, positive, share};
use crate::exit::Outcome;
use crate::limits::{Limits, MOVING};
use crate::output;
use crate::selection::{self, print_notes};
use anyhow::bail;
use nodewise_control::Settings;
use nodewise_machine::machine_list;
use nodewise_pipeline::ASYM;
use nodewise_pipeline::compare::{self, Question};
use nodewise_simulation::Traffic;
use std::path::PathBuf;
use std::time::Duration;

/// The machines that `--machine papers` stands for.
const PAPERS: &str = "itanium-9030,xeon-x7550,opteron-6386,machine-a,mai-itanium2-fss,mai-opteron-8n,\
                      sci-cluster-4,nehalem-2s,westmere-4s";

const FIRST_TOUCH: &str = "first-touch";
/// The loss of time at which `--sweep hot:NODES` says what may lie elsewhere.
const MAY_LOSE: f64 = 0.05;

const MACHINE: &str = "Machines, comma-separated: shipped names, files, `this`; `papers` for all of the papers'; `M,nps=1,2,4` (or \
     `snc=`) for M with as many nodes a socket as its firmware can be set to, `M,hbm=flat,cache` with its HBM as nodes or as caches";

#[derive(clap::Args)]
#[command(mut_arg("machine", |a| a.help(MACHINE).value_name("M,…")))]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// More profiles: their programs run at the same time, each on nodes of its own (`--affinity asym`)
    #[arg(value_name = "DIR")]
    more: Vec<PathBuf>,
    /// With several programs: restart each that ends until all have ended once [default: it does not restart]
    #[arg(long, requires = "more", help_heading = "Several programs")]
    restart: bool,
    /// Policies, comma-separated: `all`, names, `mixed:0.8..0.99` for a sweep; `balance:out-w` and the
    /// like move pages between slices (`balance:all`: each of them), `replay` moves what the profile says was moved;
    /// `mirror[:OBJECTS][@NODES]` copies what is only read to each node; `instances`: the program once a node
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    /// Run on this many CPUs (neighbouring threads of the recording share one); with several programs one number
    /// for all or one for each: 24,24,16
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Vec<u32>,
    /// Where pages are before any moves, and the baseline of speed-ups: a page policy
    #[arg(long, value_name = "P", default_value = FIRST_TOUCH, help_heading = MOVING)]
    start: String,
    #[command(flatten)]
    limits: Limits,
    /// Scale remote latency so that its mean is R times the local latency; remote bandwidth is reduced in
    /// proportion
    #[arg(long, value_name = "R", value_parser = positive, help_heading = "Model")]
    latency_ratio: Option<f64>,
    /// Multiply the bandwidths that no source states (the machine's file marks them as assumed) by F [default: 1,
    /// varied from 2/3 to 3/2]
    #[arg(long, value_name = "F", value_parser = positive, help_heading = "Model")]
    bandwidth_factor: Option<f64>,
    /// Multiply what remote memory takes longer than local by F, where no source states the machine's latencies (its
    /// file marks them as assumed) [default: 1, varied from 0.35 to 3.8]
    #[arg(long, value_name = "F", value_parser = positive, conflicts_with = "latency_ratio", help_heading = "Model")]
    latency_factor: Option<f64>,
    /// Assume that a CPU has this many misses in flight on average [default: 5, varied from 2 to 12]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Model")]
    misses_in_flight: Option<f64>,
    #[command(flatten)]
    online: Online,
    /// What reaches memory: `lines` behind caches, or all `accesses`, as where remote memory is not cached
    #[arg(long, value_name = "WHAT", default_value = "lines", value_parser = traffic, help_heading = "Model")]
    traffic: Traffic,
    /// What balance policies count: all `accesses`, or `lines`, as a monitor behind caches would
    #[arg(long, value_name = "WHAT", default_value = "accesses", value_parser = traffic, help_heading = MOVING)]
    counted: Traffic,
    /// Vary each parameter of a balance policy, and each of the limits above, separately, and show the effect; or of
    /// `hot:NODES` and `hot-objects:NODES` the size: how much fast memory the program needs
    #[arg(
        long,
        value_name = "P",
        conflicts_with = "policy",
        help_heading = MOVING
    )]
    sweep: Option<String>,
    /// With --sweep hot:NODES: the loss of time that may be borne; what may lie elsewhere then is said [default: 5 %]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true, help_heading = MOVING)]
    may_lose: Option<f64>,
    /// Draw each page's home node over time (one balance policy or `replay`), or the sweep
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long, requires = "svg", help_heading = "Output")]
    force: bool,
    /// Write JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// List every move of balance policies in JSON
    #[arg(long, requires = "json", help_heading = "Output")]
    moves: bool,
}

/// Runs in which the live loop's scheduler moves threads.
#[derive(clap::Args, Clone, Debug)]
struct Online {
    /// Move threads and pages while the programs run, by the decision code of `balance --move-threads`, from random nodes;
    /// compared with all static placements and with moving pages only
    #[arg(long, conflicts_with_all = ["sweep", "svg", "restart"], help_heading = "Moving threads")]
    move_threads: bool,
    /// With --move-threads: runs from random nodes
    #[arg(long, value_name = "N", default_value_t = 20, requires = "move_threads", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Moving threads")]
    random_starts: u64,
    /// With --move-threads: repeat the program until a run takes this long on the mean static placement
    #[arg(long, value_name = "TIME", default_value = "15s", requires = "move_threads", value_parser = duration, help_heading = "Moving threads")]
    at_least: Duration,
    /// With --move-threads: lines a microsecond that must come from memory for pages to be moved (Carrefour: 50)
    #[arg(long, value_name = "R", default_value_t = 50.0, requires = "move_threads", value_parser = cost, help_heading = "Moving threads")]
    dynamic_rate: f64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let machines = machine_list(&arguments.selection.machine.replace("papers", PAPERS));
    let machines: Vec<_> = machines.iter().map(String::as_str).collect();
    if machines.len() > 1 && (arguments.svg.is_some() || arguments.sweep.is_some()) {
        bail!("--svg and --sweep are about one machine; name one with --machine");
    }
    let is_sized = arguments.sweep.as_deref().is_some_and(compare::is_sized);
    if arguments.may_lose.is_some() && !is_sized {
        bail!("--may-lose is about the size of fast memory: --sweep hot:NODES");
    }
    if is_sized && arguments.start != FIRST_TOUCH {
        bail!(
            "--sweep hot:NODES compares with all in fast memory, and with first touches; leave out --start"
        );
    }
    output::check_new(&arguments.svg, arguments.force)?;
    let question = arguments.question();
    if arguments.online.move_threads {
        return online(arguments, &question, &machines);
    }
    if !arguments.more.is_empty() {
        return together(arguments, &question, &machines);
    }
    if let Some(policy) = &arguments.sweep {
        return sweep(arguments, &question, policy, machines[0]);
    }
    let mut done = Vec::new();
    for machine in machines {
        let comparison = question.compare(machine)?;
        print_notes(&comparison.notes);
        if let Some((file, picture)) = arguments.svg.as_ref().zip(comparison.picture.as_ref()) {
            output::write_file(file, picture, arguments.force)?;
        }
        done.push(comparison);
    }
    print(
        arguments,
        &done,
        compare::Comparison::json,
        compare::Comparison::text,
    )?;
    if !arguments.json && done.len() > 1 {
        output::print(&format!("\n{}", compare::Comparison::overview(&done)))?;
    }
    Ok(Outcome::Done)
}

fn together(arguments: &Arguments, question: &Question, machines: &[&str]) -> anyhow::Result<Outcome> {
    refuse(arguments)?;
    let done = machines.iter().map(|m| question.together(m));
    let done: Vec<compare::Together> = done.collect::<anyhow::Result<_>>()?;
    done.iter().for_each(|d| print_notes(&d.notes));
    print(arguments, &done, compare::Together::json, compare::Together::text)
}

fn online(arguments: &Arguments, question: &Question, machines: &[&str]) -> anyhow::Result<Outcome> {
    refuse(arguments)?;
    let starts = compare::Starts {
        count: arguments.online.random_starts,
        least_s: arguments.online.at_least.as_secs_f64(),
        least_rate: arguments.online.dynamic_rate,
        period_s: Settings::default().interval_ns as f64 * 1e-9,
    };
    let done = machines.iter().map(|m| question.online(m, &starts));
    let done: Vec<compare::Online> = done.collect::<anyhow::Result<_>>()?;
    done.iter().for_each(|d| print_notes(&d.notes));
    print(arguments, &done, compare::Online::json, compare::Online::text)
}

/// Prints what was found on each machine, as JSON or as text.
fn print<'a, T, J: serde::Serialize>(
    arguments: &Arguments,
    done: &'a [T],
    json: impl Fn(&'a T) -> J,
    text: impl Fn(&'a T) -> String,
) -> anyhow::Result<Outcome> {
    if arguments.json {
        let all: Vec<J> = done.iter().map(json).collect();
        output::print(&one_or_all(&all)?)?;
    } else {
        let all: Vec<String> = done.iter().map(text).collect();
        output::print(&all.join("\n"))?;
    }
    Ok(Outcome::Done)
}

/// Refuses options that apply to one program only.
fn refuse(arguments: &Arguments) -> anyhow::Result<()> {
    if !["auto", ASYM].contains(&arguments.selection.affinity.as_str()) {
        bail!("several programs at once are put on nodes of their own: --affinity asym");
    }
    let one = [
        (arguments.svg.is_some(), "--svg"),
        (arguments.sweep.is_some(), "--sweep"),
        (arguments.selection.plain_cpu.is_some(), "--plain-cpu"),
    ];
    match one.iter().find(|o| o.0) {
        Some((_, option)) => bail!("{option} is about one program; name one profile"),
        None => Ok(()),
    }
}

fn sweep(arguments: &Arguments, question: &Question, policy: &str, machine: &str) -> anyhow::Result<Outcome> {
    if compare::is_sized(policy) {
        let done = question.sizes(policy, machine, arguments.may_lose.unwrap_or(MAY_LOSE))?;
        let json = arguments.json;
        return shown(
            arguments,
            &done.notes,
            || done.svg(),
            || if json { done.json() } else { Ok(done.text()) },
        );
    }
    let done = question.sweep(policy, machine)?;
    let json = arguments.json;
    shown(
        arguments,
        &done.notes,
        || done.svg(),
        || if json { done.json() } else { Ok(done.text()) },
    )
}

/// Prints a sweep's result, and draws it where asked.
fn shown(
    arguments: &Arguments,
    notes: &[String],
    svg: impl Fn() -> String,
    text: impl Fn() -> anyhow::Result<String>,
) -> anyhow::Result<Outcome> {
    print_notes(notes);
    if let Some(file) = &arguments.svg {
        output::write_file(file, &svg(), arguments.force)?;
    }
    output::print(&text()?)?;
    Ok(Outcome::Done)
}

/// JSON of one machine as an object, of several as an array.
fn one_or_all<T: serde::Serialize>(all: &[T]) -> anyhow::Result<String> {
    let text = match all {
        [one] => serde_json::to_string_pretty(one)?,
        several => serde_json::to_string_pretty(several)?,
    };
    Ok(text + "\n")
}

impl Arguments {
    fn question(&self) -> Question {
        Question {
            selection: self.selection.selection(),
            more: self.more.clone(),
            restart: self.restart,
            policy: self.policy.clone(),
            cpus: self.cpus.clone(),
            limits: compare::Limits {
                start: self.start.clone(),
                ..self.limits.of()
            },
            latency_ratio: self.latency_ratio,
            bandwidth_factor: self.bandwidth_factor,
            latency_factor: self.latency_factor,
            traffic: self.traffic,
            counted: self.counted,
            misses_in_flight: self.misses_in_flight,
            trace: self.svg.is_some(),
            moves: self.moves,
        }
    }
}

fn traffic(text: &str) -> Result<Traffic, String> {
    match nodewise_input::resolve(text, ["lines", "accesses"].into_iter()) {
        Ok("lines") => Ok(Traffic::Lines),
        Ok(_) => Ok(Traffic::Accesses),
        Err(_) => Err("`lines` or `accesses`".into()),
    }
}
