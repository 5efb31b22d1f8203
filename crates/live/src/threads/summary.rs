//! Messages on thread migration while a session runs, and its totals at the end.

use super::thread_event::bandwidth;
use super::thread_event::{Gain, ThreadEvent, ThreadsMoved};
use super::view::{Seen, nothing_to_choose};
use crate::options::ThreadMoves;
use crate::topology::Topology;
use nodewise_analysis::figures::{bytes, exact, percent, plural};
use nodewise_control::asym::{Application, Decision, Refused};
use nodewise_control::groups::Why;
use nodewise_enforce::Restored;
use nodewise_machine::NodeId;
use nodewise_placement::asym;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of processes kept.
const MOST: usize = 1 << 12;

/// Totals of thread migration in a session.
#[derive(Clone, Debug, Default)]
pub struct ThreadSummary {
    /// The rule by which threads get nodes.
    pub(crate) rule: ThreadMoves,
    /// Number of decisions that were undone; [`Why`] has the reasons.
    pub(crate) undone: u64,
    /// Under [`ThreadMoves::Groups`]: the share of recent samples that were remote, and what is expected once memory has
    /// followed.
    pub(crate) remote: Option<(f64, f64)>,
    /// Number of thread migrations (in a dry run: that would have been made).
    pub(crate) moves: u64,
    /// Number of threads that could not be bound.
    pub(crate) failures: u64,
    pub(crate) full_migrations: u64,
    pub(crate) full_bytes: u64,
    pub(crate) restored: Option<Restored>,
    dry: bool,
    /// Whether remote accesses were scaled by resctrl counters.
    pub(crate) counted: bool,
    /// The processor's event that loads were sampled with; `None`: only page faults were.
    pub(crate) loads: Option<String>,
    /// The mechanism that caused the page faults.
    sensor: &'static str,
    /// Current and best P_wbw by the last measurement, MB/s.
    pub(crate) now: f64,
    pub(crate) best: f64,
    /// P_wbw before and after the last migration, MB/s.
    pub(crate) moved: Option<(f64, f64)>,
    pub(crate) processes: BTreeMap<u32, Process>,
    pub(crate) trouble: Option<String>,
    /// The last error that was reported, so that it is reported once.
    said: Option<String>,
    events: Vec<ThreadEvent>,
}

/// Totals of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// The kernel's numbers of the nodes that its threads ran on at first, and run on now.
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) pinned: bool,
    pub(crate) refused: Option<Refused>,
}

impl ThreadSummary {
    /// The summary of a session that begins.
    pub(super) fn new(rule: ThreadMoves, sensor: &'static str, dry: bool) -> Self {
        Self {
            rule,
            sensor,
            dry,
            ..Self::default()
        }
    }

    /// Adds a message for the user.
    pub(super) fn notice(&mut self, line: impl Into<String>) {
        self.events.push(ThreadEvent::Notice(line.into()));
    }

    pub(super) fn take_events(&mut self) -> Vec<ThreadEvent> {
        std::mem::take(&mut self.events)
    }

    /// Records which nodes each process runs on.
    pub(super) fn set_nodes(&mut self, topology: &Topology, seen: &[Seen]) {
        for one in seen.iter().filter(|s| !s.threads.is_empty()) {
            let nodes = topology.list(one.runs_on());
            if let Some(process) = self.process(one) {
                if process.before.is_empty() {
                    process.before.clone_from(&nodes);
                }
                process.after = nodes;
            }
        }
    }

    fn process(&mut self, one: &Seen) -> Option<&mut Process> {
        if self.processes.len() >= MOST && !self.processes.contains_key(&one.pid) {
            return None;
        }
        let process = self.processes.entry(one.pid).or_default();
        process.name.clone_from(&one.name);
        Some(process)
    }

    /// Records that a process has set its own affinity. Reported once, and only if moving threads was asked for: many
    /// programs bind their threads for good reasons.
    pub(super) fn report_pinned(&mut self, one: &Seen) {
        if let Some(process) = self.process(one)
            && !std::mem::replace(&mut process.pinned, true)
            && self.rule == ThreadMoves::Asym
        {
            self.notice(format!(
                "process {} ({}) is bound to CPUs, and not by us: its threads are left alone",
                one.pid, one.name
            ));
        }
    }

    /// Records the share of remote samples, now and expected.
    pub(super) fn set_remote(&mut self, remote: (f64, f64)) {
        self.remote = Some(remote);
    }

    /// Records that the threads of a process have their CPUs back.
    pub(super) fn report_undone(&mut self, one: &Seen, why: Why) {
        self.undone += 1;
        let why = match why {
            Why::MoreRemote => "more of its accesses were remote than before",
            Why::Overfull => "they waited for CPUs of their nodes, and others had some left",
            Why::RoomNotNeeded => "they made room for threads that are no longer bound",
        };
        self.notice(format!(
            "process {} ({}): its threads have the CPUs back that they had: {why}",
            one.pid, one.name
        ));
    }

    /// Records why nothing could be decided; reported when the reason changes.
    pub(super) fn report_trouble(&mut self, why: &str) {
        if self.said.as_deref() != Some(why) {
            self.notice(format!("threads stay where they are: {why}"));
            self.said = Some(why.to_owned());
        }
        self.trouble = Some(why.to_owned());
    }

    /// Records bandwidths, refusals and errors of a decision.
    pub(super) fn decided(&mut self, decision: &Decision, places: &[asym::Place], asked: &[Application]) {
        if let Some(why) = &decision.trouble {
            return self.report_trouble(why);
        }
        if decision.moves.is_empty() && nothing_to_choose(places, asked) {
            return self.report_trouble("there is one way only to place them on the nodes that may be used");
        }
        self.trouble = None;
        // Adding 0 turns the sum of nothing, -0, into 0.
        (self.now, self.best) = (decision.now + 0.0, decision.best + 0.0);
        if !decision.moves.is_empty() {
            self.moved = Some((self.now, decision.then + 0.0));
            self.now = decision.then + 0.0;
        }
        for refused in &decision.refused {
            if let Some(process) = self.processes.get_mut(&refused.application)
                && process.refused.replace(*refused).is_none()
            {
                self.events.push(ThreadEvent::Notice(refused.to_string()));
            }
        }
    }

    /// Records the migration of a process's threads.
    pub(super) fn tell_move(&mut self, topology: &Topology, one: &Seen, before: &BTreeSet<NodeId>) {
        let (from, to) = (
            topology.list(before.iter().copied()),
            topology.list(one.runs_on()),
        );
        if let Some(process) = self.process(one) {
            process.refused = None;
            if process.before.is_empty() {
                process.before.clone_from(&from);
            }
        }
        self.events.push(ThreadEvent::Moved(ThreadsMoved {
            pid: one.pid,
            name: one.name.clone(),
            from,
            to,
            gain: self.gain(),
            dry: self.dry,
        }));
    }

    fn gain(&self) -> Gain {
        if let Some((now, later)) = self.remote {
            return Gain::Remote(now, later);
        }
        let (before, after) = self.moved.unwrap_or_default();
        Gain::Bandwidth(before, after)
    }

    /// The sources of the accesses by node.
    pub(crate) fn source(&self) -> String {
        let sampled = self.loads.as_deref().unwrap_or(self.sensor);
        match self.counted {
            true => format!("{sampled}, resctrl"),
            false => sampled.to_owned(),
        }
    }

    /// The summary in one or two lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let verb = if self.dry { "would have moved" } else { "moved" };
        let mut out = format!(
            "{verb} threads {} under {} (accesses by {})",
            plural(self.moves as usize, "time"),
            self.rule.name(),
            self.source()
        );
        if self.rule == ThreadMoves::Asym {
            out += &format!(
                "; weighted bandwidth {}, at best {}",
                bandwidth(self.now),
                bandwidth(self.best)
            );
        }
        if let Some((now, _)) = self.remote {
            out += &format!("; {} of the last samples remote", percent(now));
        }
        if self.undone > 0 {
            out += &format!("; {} undone", plural(self.undone as usize, "time"));
        }
        if self.full_migrations > 0 {
            out += &format!(
                "; {} memory as a whole ({})",
                plural(self.full_migrations as usize, "time"),
                bytes(self.full_bytes)
            );
        }
        if self.failures > 0 {
            let times = plural(self.failures as usize, "time");
            out += &format!("; {times} a thread could not be bound");
        }
        if let Some(restored) = self.restored {
            out += &format!("; {} back on all former CPUs", exact(restored.done, "thread"));
        }
        out += "\n";
        for (pid, process) in self.processes.iter().filter(|(_, p)| p.before != p.after) {
            out += &format!(
                "process {pid} ({}) was on nodes {}, is on {}\n",
                process.name, process.before, process.after
            );
        }
        for (_, process) in self.processes.iter() {
            if let Some(refused) = &process.refused {
                out += &format!("{refused}\n");
            }
        }
        out
    }
}
