//! What `report`, `map` and `simulate` work on: a profile seen on a machine, at a page size, with
//! threads bound somewhere.

use crate::output::say;
use anyhow::bail;
use nodewise_analysis::{Affinity, Histogram, first_touch_nodes};
use nodewise_linux::plugin::{Cell, Input, Plugin};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{
    Context, Mapping, Outside, PagePolicy, page_policies, policies::Custom, thread_policy,
};
use nodewise_profile::{BASE_PAGE_SHIFT, Observer, Profile};
use nodewise_store::Reader;
use std::path::{Path, PathBuf};

/// The arguments these commands share.
#[derive(clap::Args, Clone, Debug)]
pub struct Selection {
    /// Profile directory, or one that holds profiles: then the latest [default: the latest here]
    #[arg(value_name = "DIR")]
    pub profile: Option<PathBuf>,
    /// A shipped machine's name, a machine file, or `this`
    #[arg(long, value_name = "M", default_value = "this")]
    pub machine: String,
    /// Where threads run: sharing-aware (all nodes, sharers together), asym (few nodes, the best connected),
    /// recorded (where samples saw them), compact, identity, scatter, likwid:EXPR, hwloc:EXPR, file:FILE; auto:
    /// recorded on the machine that was sampled, else sharing-aware
    #[arg(
        long,
        visible_alias = "threads-policy",
        value_name = "A",
        default_value = "auto"
    )]
    pub affinity: String,
    /// Page size of decisions: 4K, or 2M with transparent huge pages
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = page_shift)]
    pub page_size: u32,
}

/// Why a profile without accesses is no use, and the mend. A recorder that ends takes `raw` away.
fn empty(folder: &Path, observer: Observer) -> String {
    let folder_name = folder.display();
    if folder.join("raw").is_dir() {
        format!("{folder_name}: the recording was interrupted; nodewise record --recover {folder_name}")
    } else if observer.is_sampled() {
        format!("{folder_name}: no page was sampled; watch for longer, while the program works")
    } else {
        format!("{folder_name}: no accesses were recorded; is the program built with nodewise-cc?")
    }
}

/// A profile opened as the arguments say.
pub struct Selected {
    /// The profile's small tables, and its accesses as a stream.
    pub reader: Reader,
    /// Page × thread counts over the whole run.
    pub histogram: Histogram,
    /// Where threads run.
    pub affinity: Affinity,
    /// The target.
    pub machine: Machine,
}

impl Selection {
    /// Opens the profile and reads it through once.
    pub fn open(&self) -> anyhow::Result<Selected> {
        let machine = self.machine()?;
        let reader = self.reader()?;
        let profile = reader.profile();
        let histogram = Histogram::build(&reader, profile.threads.len(), self.page_size)?;
        if histogram.is_empty() {
            bail!(empty(reader.folder(), profile.meta.observer));
        }
        let affinity = thread_policy(&self.affinity, profile, &histogram, &machine, &Files)?;
        Ok(Selected {
            reader,
            histogram,
            affinity,
            machine,
        })
    }

    /// The machine alone.
    pub fn machine(&self) -> anyhow::Result<Machine> {
        Ok(Machine::load(&self.machine)?)
    }

    /// The profile alone.
    pub fn reader(&self) -> anyhow::Result<Reader> {
        let folder = nodewise_store::latest(self.profile.as_deref().unwrap_or(Path::new(".")))?;
        Ok(Reader::open(&folder)?)
    }
}

impl Selected {
    /// The profile's small tables.
    pub fn profile(&self) -> &Profile {
        self.reader.profile()
    }

    /// What policies look at.
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

    /// The policies of a comma-separated list, in its order; `all` is every one worth comparing.
    pub fn policies(&self, list: &str) -> anyhow::Result<Vec<Box<dyn PagePolicy>>> {
        Ok(page_policies(list, &self.machine, &Files)?)
    }

    /// The mapping of each policy of a list; what policies note about it goes to standard error.
    pub fn mappings(&self, list: &str) -> anyhow::Result<Vec<Mapping>> {
        let (mappings, notes) = self.noted_mappings(list)?;
        tell(&notes);
        Ok(mappings)
    }

    /// The mapping of each policy of a list, and what policies note about them.
    pub fn noted_mappings(&self, list: &str) -> anyhow::Result<(Vec<Mapping>, Vec<String>)> {
        let context = self.context();
        let policies = self.policies(list)?;
        let mappings = policies.iter().map(|p| Ok(p.try_place(&context)?));
        let mappings = mappings.collect::<anyhow::Result<_>>()?;
        Ok((
            mappings,
            policies.iter().flat_map(|p| p.notes(&context)).collect(),
        ))
    }

    /// Where the kernel's default puts each page.
    pub fn first_touch(&self) -> Vec<NodeId> {
        first_touch_nodes(
            self.profile(),
            &self.histogram,
            &self.affinity,
            self.machine.node_count(),
        )
    }
}

/// Says what policies note.
pub fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say!("{note}"));
}

/// `4K`, `2M` or another power of two from 4 KiB, as a shift over base pages.
fn page_shift(text: &str) -> Result<u32, String> {
    let bytes = nodewise_machine::parse_bytes(text).filter(|b| b.is_power_of_two());
    let shift = bytes
        .and_then(|b| b.ilog2().checked_sub(BASE_PAGE_SHIFT))
        .filter(|s| *s <= 18);
    shift.ok_or_else(|| format!("`{text}` is no page size; use 4K or 2M"))
}

/// Files and shared libraries, for policies that are not built in.
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

/// Lays a context out as the C interface has it.
fn ask(plugin: &Plugin, context: &Context<'_>) -> Result<Vec<u32>, String> {
    let Context {
        profile,
        histogram,
        affinity,
        machine,
    } = *context;
    let numbers = |nodes: &[NodeId]| nodes.iter().map(|n| n.0).collect::<Vec<_>>();
    let cell = |e: &nodewise_analysis::Entry| Cell {
        reads: e.reads,
        writes: e.writes,
        lines: e.lines,
        thread: e.thread.0,
    };
    let first_touch = first_touch_nodes(profile, histogram, affinity, machine.node_count());
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
