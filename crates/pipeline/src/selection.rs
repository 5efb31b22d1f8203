//! Opens a profile for a machine, a page size and a thread placement.

use crate::roles;
use anyhow::bail;
use nodewise_analysis::figures::{amount, bytes, seconds};
use nodewise_analysis::{Affinity, Histogram, HistogramBuilder, LastWrites, Slices, Visitor, read};
use nodewise_input::shell_word;
use nodewise_linux::Host;
use nodewise_linux::plugin::{Cell, Input, Plugin};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{
    Context, Copies, Mapping, Outside, PagePolicy, page_policies, plan_copies, policies::Custom,
    thread_policy,
};
use nodewise_profile::{Meta, Observer, Profile};
use nodewise_simulation::{Calibration, Parameters, Range, UNKNOWN_CORES};
use nodewise_store::Reader;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A profile and a machine, as the user named them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// A profile directory, or a directory with profiles, of which the latest is used; `None` for the latest in the
    /// current directory.
    pub profile: Option<PathBuf>,
    /// A shipped machine's name, a machine file, or `this`.
    pub machine: String,
    /// The thread placement policy, as the user wrote it.
    pub affinity: String,
    /// The page size for placement decisions, as a shift over base pages.
    pub page_size: u32,
    /// Other recordings of the same command, to be compared with this one by the parts that threads take; if empty,
    /// those with which the profile was compared earlier.
    pub other_runs: Vec<PathBuf>,
    /// The program's build without counting, for commands that are suggested.
    pub plain: Option<PathBuf>,
    /// CPU time of a plain run of the same work, if it was measured; without it, the cost of recording is assumed.
    pub plain_cpu: Option<Duration>,
    /// Compute time on the machine's cores over that on the recording host's, if it is known.
    pub core_factor: Option<f64>,
}

/// Why a profile without accesses cannot be used, and the remedy. A recorder has `raw` while it records, and removes it at the end.
fn empty(folder: &Path, observer: Observer) -> String {
    let folder_name = folder.display();
    if folder.join("raw").is_dir() {
        let typed = shell_word(folder_name.to_string());
        format!(
            "{folder_name}: nothing was recorded yet, or the recording was interrupted: then nodewise record --recover {typed}"
        )
    } else if observer.is_sampled() {
        format!("{folder_name}: no page was sampled; watch for longer, while the program works")
    } else {
        format!("{folder_name}: no accesses were recorded; is the program built with nodewise-cc?")
    }
}

/// A profile opened on a machine.
pub struct Selected {
    /// The profile's small tables, and its accesses as a stream.
    pub reader: Reader,
    /// Page × thread counts over the whole run.
    pub histogram: Histogram,
    /// The CPU and node of each thread.
    pub affinity: Affinity,
    /// The machine for which times are predicted.
    pub machine: Machine,
}

impl Selection {
    /// The model's parameters for a recording on a machine; unknown ones have their whole range. The cores of this host are as fast as
    /// those of the recording host if their models are the same.
    #[must_use]
    pub fn parameters(&self, machine: &str, recorded: &Meta) -> Parameters {
        let is_here = || {
            let model = Host::default().cpu_model();
            machine.eq_ignore_ascii_case("this") && !model.is_empty() && recorded.host_model == model
        };
        Parameters {
            plain_cpu_ns: self.plain_cpu.map(|time| time.as_nanos() as f64),
            core_factor: match self.core_factor {
                Some(factor) => Range::exactly(factor),
                None if is_here() => Range::exactly(1.0),
                None => UNKNOWN_CORES,
            },
            ..Parameters::default()
        }
    }

    /// Opens the profile, sums its accesses to the histogram in one pass, and gives the threads their CPUs.
    ///
    /// # Errors
    /// If there is no such profile, machine or thread policy, or the profile has no accesses.
    pub fn open(&self) -> anyhow::Result<Selected> {
        self.open_with(&mut [])
    }

    /// [`Selection::open`], with other visitors of the same rows, which must not need page indices.
    pub(crate) fn open_with(&self, others: &mut [&mut dyn Visitor]) -> anyhow::Result<Selected> {
        let machine = self.machine()?;
        let mut reader = self.reader()?;
        if !self.other_runs.is_empty() {
            reader.set_taken(roles::compared(&reader, &self.other_runs)?);
        }
        let profile = reader.profile();
        let threads = profile.threads.len();
        let mut builder = HistogramBuilder::default();
        let mut slices = Slices::new(threads, 0, vec![&mut builder]);
        let mut visitors: Vec<&mut dyn Visitor> = vec![&mut slices];
        visitors.extend(others.iter_mut().map(|v| &mut **v as &mut dyn Visitor));
        read(&reader, &mut visitors)?;
        let histogram = builder.finish(threads, self.page_size);
        if histogram.is_empty() {
            bail!(empty(reader.folder(), profile.meta.observer));
        }
        self.check_plain_cpu(profile, &histogram)?;
        let affinity = thread_policy(&self.affinity, profile, &histogram, &machine, &Files)?;
        Ok(Selected {
            reader,
            histogram,
            affinity,
            machine,
        })
    }

    /// Refuses a time of the plain build that is shorter than any core needs, or longer than that of the recorded one, beyond
    /// what samples explain: it is of other work, or contains waiting.
    fn check_plain_cpu(&self, profile: &Profile, histogram: &Histogram) -> anyhow::Result<()> {
        let Some(plain) = self.plain_cpu else {
            return Ok(());
        };
        let parameters = self.parameters(&self.machine, &profile.meta);
        let calibration = Calibration::new(profile, histogram, &parameters);
        let least = calibration.least_plain_ns(&parameters);
        if !profile.meta.observer.is_sampled() && (plain.as_nanos() as f64) < least {
            bail!(
                "--plain-cpu {}: no core makes the recorded {} in less than {}; is it the time of the same work?",
                seconds(plain.as_secs_f64()),
                amount(calibration.accesses, "access"),
                seconds(least * 1e-9)
            );
        }
        if calibration.plain_is_slower {
            bail!(
                "--plain-cpu {:.3}s: the recorded run itself took {:.3} s of CPU time without waiting; a plain run of the \
                 same work takes no longer (OMP_WAIT_POLICY=passive leaves out waiting)",
                plain.as_secs_f64(),
                calibration.busy_ns * 1e-9
            );
        }
        Ok(())
    }

    /// The machine.
    ///
    /// # Errors
    /// If there is no such machine.
    pub fn machine(&self) -> anyhow::Result<Machine> {
        Ok(Machine::load(&self.machine)?)
    }

    /// The profile.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn reader(&self) -> anyhow::Result<Reader> {
        let folder = nodewise_store::latest(self.profile.as_deref().unwrap_or(Path::new(".")))?;
        Ok(Reader::open(&folder)?)
    }
}

impl Selected {
    /// The profile's small tables.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        self.reader.profile()
    }

    /// The input of placement policies.
    #[must_use]
    pub fn context(&self) -> Context<'_> {
        let Self {
            histogram,
            affinity,
            machine,
            ..
        } = self;
        Context {
            profile: self.profile(),
            histogram,
            affinity,
            machine,
        }
    }

    /// The policies of a comma-separated list, in its order; `all` stands for all policies that are worth comparing.
    ///
    /// # Errors
    /// If there is no such policy.
    pub fn policies(&self, list: &str) -> anyhow::Result<Vec<Box<dyn PagePolicy>>> {
        Ok(page_policies(list, &self.machine, &Files)?)
    }

    /// The mapping of each policy of a list, and the policies' remarks on them.
    ///
    /// # Errors
    /// If there is no such policy, or one of them cannot place this profile.
    pub fn mappings(&self, list: &str) -> anyhow::Result<(Vec<Mapping>, Vec<String>)> {
        let context = self.context();
        let policies = self.policies(list)?;
        let placed: Vec<_> = policies.par_iter().map(|p| p.try_place(&context)).collect();
        let mappings: Vec<Mapping> = placed.into_iter().collect::<Result<_, _>>()?;
        let mut notes: Vec<String> = policies.iter().flat_map(|p| p.notes(&context)).collect();
        notes.extend(self.without_room(&mappings));
        Ok((mappings, notes))
    }

    /// A remark on mappings that put more on a node than it has: predictions take its memory to be large enough.
    fn without_room(&self, mappings: &[Mapping]) -> Option<String> {
        let page_size = self.histogram.page_size();
        let overfull = |mapping: &Mapping| {
            let mut used = vec![0; self.machine.node_count()];
            mapping.nodes.iter().for_each(|n| used[n.index()] += page_size);
            let has = self.machine.nodes.iter().map(|n| n.memory);
            let mut over = (0..)
                .zip(used)
                .zip(has)
                .filter(|((_, used), has)| *has > 0 && used > has);
            let ((node, used), has) = over.next()?;
            Some(format!(
                "{} puts {} more on node {node} than its {}",
                mapping.policy,
                bytes(used - has),
                bytes(has)
            ))
        };
        let all: Vec<String> = mappings.iter().filter_map(overfull).collect();
        (!all.is_empty()).then(|| {
            format!(
                "{} has too little memory, and predictions are made as if it had enough: {}; fill:NODES and hot:NODES keep to the memory of the nodes named",
                self.machine.name,
                all.join(", ")
            )
        })
    }

    /// What policies that give pages several nodes copy.
    ///
    /// # Errors
    /// If one of them is none, copies do not suit an object that it names, or accesses are samples.
    pub(crate) fn copies(&self, list: &[String], writes: &LastWrites) -> anyhow::Result<Vec<Copies>> {
        if let Some(policy) = list.first().filter(|_| self.profile().meta.observer.is_sampled()) {
            bail!(
                "{policy}: this profile has samples, which tell neither what nothing writes nor what it costs; record it exactly"
            );
        }
        let plan = |text: &String| Ok(plan_copies(text, &self.context(), writes)?);
        list.iter().map(plan).collect()
    }

    /// The node of each page under the kernel's default placement.
    #[must_use]
    pub fn first_touch(&self) -> Vec<NodeId> {
        self.context().first_touch()
    }
}

/// Reads files and shared libraries for policies that are not built in.
pub struct Files;

impl Outside for Files {
    fn read(&self, path: &str) -> Result<String, String> {
        nodewise_input::text(Path::new(path)).map_err(|e| format!("cannot read {path}: {e}"))
    }

    fn plugin(&self, path: &str) -> Result<Box<dyn PagePolicy>, String> {
        let plugin = Plugin::load(Path::new(path)).map_err(|e| e.to_string())?;
        Ok(Box::new(Custom::new(
            path,
            Box::new(move |context| ask(&plugin, context)),
        )))
    }
}

/// Converts a context to the C interface's form, and returns the plug-in's placement.
fn ask(plugin: &Plugin, context: &Context<'_>) -> Result<Vec<u32>, String> {
    let Context {
        histogram,
        affinity,
        machine,
        ..
    } = *context;
    let numbers = |nodes: &[NodeId]| nodes.iter().map(|n| n.0).collect::<Vec<_>>();
    let cell = |e: &nodewise_analysis::Entry| Cell {
        reads: e.reads,
        writes: e.writes,
        lines: e.lines,
        thread: e.thread.0,
    };
    let first_touch = context.first_touch();
    plugin
        .place(&Input {
            page_size: histogram.page_size(),
            page: &histogram.pages.iter().map(|p| p.0).collect::<Vec<_>>(),
            offsets: &histogram.offsets,
            cells: &histogram.entries.iter().map(cell).collect::<Vec<_>>(),
            first_touch: &numbers(&first_touch),
            thread_node: &numbers(&affinity.nodes),
            latency: &machine.latency_ns.concat(),
            bandwidth: &machine.nodes.iter().map(|n| n.bandwidth).collect::<Vec<_>>(),
        })
        .map_err(|e| e.message().to_owned())
}
