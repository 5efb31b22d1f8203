//! What running a command under a placement involves, computed before anything is started.

mod memory_policy;

use crate::places;
use crate::rules::{Resolved, resolve, resolve_places};
use crate::table::{NODES, flags};
use crate::target::unreached;
use crate::{
    Binding, EnforceError, FilesOfRule, Host, HugePages, LoopSchedule, Request, RuleFound, Table, Target,
    Threads,
};
use nodewise_analysis::figures::{and_more, bytes, percent};
use nodewise_analysis::{Assignment, LEAST_GAIN_BY_DATA};
use nodewise_linux::mempolicy::Policy;
use nodewise_placement::{Distribution, OtherRuns, Placement, Rule};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of programs that a note lists by name.
const NAMES_SHOWN: usize = 3;

/// The granularity of placement decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 2 MiB where the kernel makes huge pages by itself or the map was made at 2 MiB, else 4 KiB.
    Auto,
    /// 4 KiB; transparent huge pages are turned off for placed objects.
    Base,
    /// 2 MiB, the size of transparent huge pages.
    Huge,
}

/// How a thread is matched with its part of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Roles {
    /// By data if, according to the map, runs deal parts in order of arrival and matching by data keeps more accesses
    /// local than by number; else by number.
    #[default]
    Auto,
    /// By thread number, with blocks dealt as in the map.
    Number,
    /// By the data that the thread is seen to use while it runs.
    Data,
}

/// The user's options for a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How threads are bound.
    pub binding: Binding,
    /// Number of threads, if the user states it; it is passed on to OpenMP.
    pub threads: Option<usize>,
    /// The granularity of placement decisions.
    pub page_size: PageSize,
    /// How a thread is matched with its part of the data.
    pub roles: Roles,
    /// Rules before those of a map, as `OBJECTS=HOW`.
    pub places: Vec<String>,
    /// How OpenMP loops with dynamic or guided schedules are dealt instead; `None`: as the program asks.
    pub schedule: Option<LoopSchedule>,
}

/// Everything that is done to run the command.
#[derive(Debug)]
pub struct Plan {
    /// The program that is placed; `None` if all programs are.
    pub target: Option<Target>,
    /// For each rule of the command line and of the map, what it matches in the program.
    pub rules: Vec<RuleFound>,
    /// The files that rules name, which are placed before the program starts.
    pub files: Vec<FilesOfRule>,
    /// For each rule of the table, the index of its rule in the placement.
    pub origin: Vec<usize>,
    /// Number of threads, with their CPUs and nodes.
    pub threads: Threads,
    /// The kernel's numbers of the nodes used.
    pub nodes: Vec<u32>,
    /// The table for the preload; `None` if there is no preload.
    pub table: Option<Table>,
    /// The file to which the preload writes objects, if asked for.
    pub objects: Option<PathBuf>,
    /// Whether threads are moved, while they run, to the nodes of the data that they are seen to use.
    pub follows: bool,
    /// How OpenMP loops with dynamic or guided schedules are dealt instead.
    pub schedule: Option<LoopSchedule>,
    /// Whether processes get a companion, which needs the preload: see [`crate::Holder`].
    pub companion: bool,
    /// Whether the first program takes no preload: it has another C library or architecture, or a sanitizer.
    pub unreached: bool,
    /// Environment variables to set for the command.
    pub environment: Vec<(String, String)>,
    /// The memory policy that the command starts with.
    pub policy: Option<Policy>,
    /// What the kernel's interleave weights become while the command runs: nodes by the kernel's number, each with its
    /// weight. Empty if they stay.
    pub weights: Vec<(u32, u32)>,
    /// The CPUs that the command may use; empty for all that this process may use.
    pub cpus: Vec<u32>,
    /// Notes on decisions and on what could not be done, one line each.
    pub notes: Vec<String>,
    /// Started programs that take no preload, after [`Plan::note_unplaced`].
    pub unplaced: Vec<String>,
}

impl Plan {
    /// Plans how to run `command` as `request` says on `host`. Changes nothing.
    ///
    /// # Errors
    /// The program cannot be placed ([`Target::find`]), or the host lacks what the policy needs.
    pub fn new(
        request: &Request,
        host: &Host,
        command: &[OsString],
        options: &Options,
    ) -> Result<Self, EnforceError> {
        let here = host.nodes.len() as u32;
        let places: Vec<Rule> = options
            .places
            .iter()
            .map(|text| places::rule(text, host))
            .collect::<Result<_, _>>()?;
        let map = match request {
            Request::Map(placement) => {
                let mut folded = placement.folded(here).into_owned();
                folded.rules.splice(0..0, places.iter().cloned());
                Some(folded)
            }
            _ => None,
        };
        let map = map.as_ref();
        let mut options = options.clone();
        let of_all_programs = map.is_none() && !places.is_empty() && !places.iter().any(by_thread);
        if of_all_programs && options.binding == Binding::AsMapped {
            // Servers start many processes; bound by one plan they would share the first few CPUs.
            options.binding = Binding::None;
        }
        let options = &options;
        let target = match (Target::find(command, request.program()), map) {
            (Ok(target), _) => Some(target),
            (Err(error), _) if error.is_foreign() => None,
            (Err(error), None) if error.is_script() => None,
            (Err(error), None)
                if !error.is_not_found() && !error.is_not_executable() && *request != Request::Interleave =>
            {
                None
            }
            (Err(error), _) => return Err(error),
        };
        let count = thread_count(target.as_ref(), host, map, options);
        let mut plan = Self {
            rules: Vec::new(),
            files: Vec::new(),
            origin: Vec::new(),
            threads: Threads::new(host, count, &options.binding, map.map(|m| &m.binding))?,
            nodes: host.nodes.iter().map(|n| n.os_index).collect(),
            table: None,
            objects: None,
            follows: false,
            schedule: options.schedule,
            companion: false,
            environment: Vec::new(),
            policy: None,
            weights: Vec::new(),
            cpus: Vec::new(),
            unreached: unreached(command).is_some(),
            notes: Vec::new(),
            unplaced: Vec::new(),
            target,
        };
        if plan.schedule.is_some() {
            let uses_openmp = plan.target.as_ref().map(Target::uses_openmp);
            plan.notes.extend(LoopSchedule::note(command, uses_openmp)?);
        }
        if let (Some(placement), Some(target)) = (map, &plan.target) {
            let resolved = resolve(placement, target)?;
            plan.rules.clone_from(&resolved.found);
            plan.check_map(request, host);
            plan.tabulate(placement, resolved, host, options)?;
        } else if !places.is_empty() {
            let resolved = resolve_places(&places);
            plan.rules.clone_from(&resolved.found);
            let table = plan.empty_table(Distribution::FirstTouch, host, options, false)?;
            plan.fill(table, resolved);
        }
        let threads = options
            .threads
            .map(|n| ("OMP_NUM_THREADS".to_owned(), n.to_string()));
        plan.environment.extend(threads);
        if host.single {
            plan.plan_single_node();
            return Ok(plan);
        }
        if !host.pretended {
            let rules = map.map_or(&places, |map| &map.rules);
            // Of a program that cannot be placed there are those of the command line alone.
            plan.place_files(&rules[..plan.rules.len()]);
        }
        plan.process_policy(request, host, options)?;
        match unreached(command) {
            Some(why) => plan.plan_without_preload(&why, request, options),
            None => plan.bind(host, options),
        }
        plan.follow(map, host, options);
        Ok(plan)
    }

    /// Number of rules that match something in the program.
    #[must_use]
    pub fn found(&self) -> usize {
        self.rules.iter().filter(|r| r.missing.is_none()).count()
    }

    /// Whether the command gets the preload.
    #[must_use]
    pub fn preloads(&self) -> bool {
        // Beside the library that deals loops, the preload takes both out of the environment of programs that bear none.
        let wanted =
            self.table.is_some() || self.objects.is_some() || self.companion || self.schedule.is_some();
        wanted && !self.unreached
    }

    /// Whether the preload binds threads when the program creates them, and so counts them.
    #[must_use]
    pub fn binds_threads(&self) -> bool {
        self.table
            .as_ref()
            .is_some_and(|t| t.flags & flags::BIND_THREADS != 0)
    }

    /// Adds a note on started programs that take no preload, as their parents reported in `folder`; none if only one
    /// program is placed.
    pub fn note_unplaced(&mut self, folder: &Path) {
        let all = self.table.as_ref().is_some_and(|t| t.target == (0, 0));
        let text = std::fs::read_to_string(folder.join("unplaced")).unwrap_or_default();
        let names: BTreeSet<&str> = text.lines().collect();
        if !all || names.is_empty() {
            return;
        }
        let shown: Vec<&str> = names.iter().copied().take(NAMES_SHOWN).collect();
        self.notes.push(format!(
            "unplaced, as static, made for another processor or C library, with a sanitizer, or to gain privileges: {}{}",
            shown.join(", "),
            and_more(names.len() - shown.len(), "program", "--json or --summary: `unplaced`")
        ));
        self.unplaced = names.into_iter().map(str::to_owned).collect();
    }

    /// Number of rules whose objects are identified by function names and the order of calls only, without line tables.
    #[must_use]
    pub fn by_order(&self) -> usize {
        self.rules.iter().filter(|r| r.by_order).count()
    }

    /// There is only one node, so nothing to choose: drops table and preload.
    fn plan_single_node(&mut self) {
        self.table = None;
        let changed = match self.schedule {
            Some(_) => "but loops are dealt as asked for",
            None => "nothing is changed",
        };
        self.notes.push(format!(
            "one memory node here: pages are not placed, threads not bound, {changed}"
        ));
    }

    /// Finds the files that rules name.
    fn place_files(&mut self, rules: &[Rule]) {
        self.files = FilesOfRule::of(rules, &self.nodes, &self.threads.nodes);
        for files in &self.files {
            let rule = &mut self.rules[files.rule];
            rule.places.splice(
                0..0,
                files.found.iter().map(|file| {
                    format!(
                        "{} ({}), before the program starts",
                        file.path.display(),
                        bytes(file.size)
                    )
                }),
            );
        }
    }

    /// Drops table and preload, which the first program does not take; the process's memory policy still applies.
    fn plan_without_preload(&mut self, why: &str, request: &Request, options: &Options) {
        self.table = None;
        let placed_by_us = matches!(request, Request::Map(_) | Request::Interleave) || !self.rules.is_empty();
        if placed_by_us {
            self.notes
                .push(format!("{why}: it runs unplaced, its threads are not bound"));
        } else if options.binding != Binding::None {
            self.notes.push(format!("{why}: its threads are not bound"));
        }
    }

    /// Notes differences between the machine and program of the map and those here.
    fn check_map(&mut self, request: &Request, host: &Host) {
        let Request::Map(placement) = request else {
            return;
        };
        let program = self
            .target
            .as_ref()
            .and_then(|t| t.path.file_name())
            .unwrap_or_default();
        if !placement.program.is_empty() && *program != *placement.program {
            self.notes.push(format!(
                "the map is of `{}`, this is `{}`: {} of {} rules match{}",
                placement.program,
                program.to_string_lossy(),
                self.found(),
                self.rules.len(),
                match self.by_order() {
                    0 => String::new(),
                    n => format!("; {n} of them by the order of calls only"),
                }
            ));
        }
        let here = host.nodes.len();
        if placement.nodes as usize > here && here > 1 {
            self.notes.push(format!(
                "the map is for {} nodes, here are {here}: neighbouring nodes become one",
                placement.nodes
            ));
        }
        if (placement.nodes as usize) < here {
            self.notes
                .push(format!("the map uses {} of {here} nodes", placement.nodes));
        }
    }

    fn tabulate(
        &mut self,
        placement: &Placement,
        resolved: Resolved,
        host: &Host,
        options: &Options,
    ) -> Result<(), EnforceError> {
        let huge_map = placement.page_size >= 2 << 20;
        let table = self.empty_table(placement.default.clone(), host, options, huge_map)?;
        self.fill(table, resolved);
        Ok(())
    }

    /// Takes the table with resolved rules in it. Without modules it is for every program.
    fn fill(&mut self, mut table: Table, resolved: Resolved) {
        table.modules = resolved.modules;
        table.target = table
            .modules
            .first()
            .map(|m| (m.device, m.inode))
            .unwrap_or_default();
        table.sites = resolved.sites;
        table.rules = resolved.rules;
        table.variables = resolved.variables;
        self.origin = resolved.origin;
        self.table = Some(table);
    }

    fn empty_table(
        &self,
        fallback: Distribution,
        host: &Host,
        options: &Options,
        huge_map: bool,
    ) -> Result<Table, EnforceError> {
        if self.nodes.iter().any(|n| *n >= NODES) {
            return Err(EnforceError::new(format!(
                "node numbers from {NODES} are not supported"
            )));
        }
        let always = host.huge == HugePages::Always;
        let huge = match options.page_size {
            PageSize::Auto => always || huge_map,
            PageSize::Base => false,
            PageSize::Huge => true,
        };
        let rest = if matches!(fallback, Distribution::Interleave(_)) {
            flags::PLACE_REST
        } else {
            0
        };
        let split = if always && !huge { flags::SPLIT_HUGE } else { 0 };
        Ok(Table {
            flags: rest | split,
            granule: if huge { 512 } else { 1 },
            fallback,
            ..self.bare_table()
        })
    }

    /// Plans how threads are bound: OpenMP binds its own threads, the preload binds others when they are created.
    fn bind(&mut self, host: &Host, options: &Options) {
        if options.binding == Binding::None || self.threads.cpus.is_empty() {
            return;
        }
        if host.chosen && !host.pretended {
            self.cpus = host
                .nodes
                .iter()
                .flat_map(|n| n.cpus.iter().map(|c| c.0))
                .collect();
        }
        if host.pretended || self.target.as_ref().is_some_and(|t| !t.uses_openmp()) {
            self.bind_by_preload(flags::BIND_THREADS);
            return;
        }
        let own = ["OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];
        if let Some(set) = own.iter().find(|v| std::env::var_os(v).is_some()) {
            let note = format!("threads are bound by {set} as you set it, not by the plan");
            self.notes.push(note);
            return;
        }
        self.environment.extend([
            ("OMP_PLACES".into(), self.threads.openmp_places()),
            ("OMP_PROC_BIND".into(), "close".into()),
        ]);
        self.bind_by_preload(flags::OPENMP_PLACES);
    }

    /// Plans whether threads are moved to their data while they run. This needs threads that the preload binds, and
    /// objects that rules place.
    fn follow(&mut self, map: Option<&Placement>, host: &Host, options: &Options) {
        let several = self.threads.nodes.iter().any(|n| *n != self.threads.nodes[0]);
        let possible = self.binds_threads() && several && !host.pretended;
        let Some(placement) = map.filter(|_| possible) else {
            if let Some(other) = map.and_then(|m| m.kept.other_runs)
                && other.assignment != Assignment::Fixed
                && !host.pretended
            {
                self.notes.push(by_number_only(other));
            } else if options.roles == Roles::Data {
                self.notes.push(
                    "--roles data: threads follow data only under a map, and where nodewise binds them itself; they do not here"
                        .into(),
                );
            }
            return;
        };
        let other = placement.kept.other_runs;
        let pays = |o: OtherRuns| {
            o.assignment == Assignment::Arrival && o.by_data >= o.by_number + LEAST_GAIN_BY_DATA
        };
        self.follows = match options.roles {
            Roles::Auto => other.is_some_and(pays),
            Roles::Number => false,
            Roles::Data => true,
        };
        match (&mut self.table, other) {
            (Some(table), _) if self.follows => table.flags |= flags::FOLLOWED,
            (_, Some(other)) if other.assignment != Assignment::Fixed => {
                self.notes.push(by_number_only(other));
            }
            _ => {}
        }
    }

    /// Makes the preload bind threads, the main thread from the start. `others`: the table's flags for the other
    /// threads.
    fn bind_by_preload(&mut self, others: u32) {
        if self.table.is_none() {
            self.table = self.binding_table();
        }
        if let Some(table) = &mut self.table {
            table.flags |= flags::MAIN_HOME | others;
        }
    }

    /// A table that only binds threads, if they are bound.
    fn binding_table(&self) -> Option<Table> {
        let target = self.target.as_ref()?.path.metadata().ok()?;
        Some(Table {
            target: (target.dev(), target.ino()),
            ..self.bare_table()
        })
    }

    /// A table with nodes and threads, but without rules and for any program.
    fn bare_table(&self) -> Table {
        Table {
            flags: 0,
            target: (0, 0),
            granule: 1,
            fallback: Distribution::FirstTouch,
            nodes: self.nodes.clone(),
            thread_nodes: self.threads.nodes.clone(),
            thread_cpus: self.threads.cpus.iter().map(|c| c.0).collect(),
            modules: Vec::new(),
            sites: crate::sites::Sites::default(),
            rules: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Sets the environment and memory policy of `command`. `preload` is the library; `folder` holds the table and
    /// receives the summaries.
    pub fn prepare(&self, command: &mut Command, preload: &Path, folder: &Path) {
        command.envs(self.environment.iter().map(|(k, v)| (k, v)));
        if self.preloads() {
            nodewise_linux::companion::preload(command, &[preload.to_owned()]);
        }
        if let Some(schedule) = self.schedule {
            schedule.prepare(command, preload.with_file_name(LoopSchedule::LIBRARY));
            command.env("NODEWISE_LOOPS", folder);
        }
        if self.table.is_some() {
            command.env("NODEWISE_PLACEMENT", folder);
        }
        if let Some(file) = &self.objects {
            command.env("NODEWISE_OBJECTS", file);
        }
        if let Some(policy) = self.policy {
            policy.before_exec(command);
        }
        if !self.cpus.is_empty() {
            nodewise_linux::affinity::before_exec(&self.cpus, command);
        }
    }
}

fn by_thread(rule: &Rule) -> bool {
    matches!(
        rule.distribution,
        Distribution::ByThread { .. } | Distribution::Allocator
    )
}

/// The note that the map binds threads by number although runs differ in which thread takes which part.
fn by_number_only(other: OtherRuns) -> String {
    let assumed = if other.assumed { "if " } else { "" };
    format!(
        "{assumed}threads take other parts in each run: by their numbers this map keeps {} of the accesses local, first touch {}",
        percent(other.by_number),
        percent(other.first_touch)
    )
}

fn thread_count(target: Option<&Target>, host: &Host, map: Option<&Placement>, options: &Options) -> usize {
    let openmp = target.is_none_or(Target::uses_openmp);
    let asked = || {
        let variable = std::env::var("OMP_NUM_THREADS").ok()?;
        variable.split(',').next()?.trim().parse::<usize>().ok()
    };
    let recorded = || map.map(|m| m.threads as usize).filter(|t| *t > 0);
    let count = options
        .threads
        .or_else(|| if openmp { asked() } else { recorded() });
    count.unwrap_or_else(|| host.cpu_count()).max(1)
}
