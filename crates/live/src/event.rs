//! Typed events of a session, and their subscribers.

use crate::status::Status;
use crate::threads::ThreadsMoved;
use nodewise_control::{Interval, PageResult};
use nodewise_machine::NodeId;
use nodewise_observe::faults::Watch;
use nodewise_placement::{Move, Reason};
use nodewise_profile::PageNumber;
use std::time::Duration;

/// An event of a session.
pub enum Event<'a> {
    /// A message for the user, one line.
    Notice(&'a str),
    /// Decisions were paused (true) or resumed (false).
    Paused(bool),
    /// New samples, first touches, and processes that began or ended.
    Sampled(&'a Watch),
    /// Pages were found on another node, not moved by a decision of this interval.
    Found(Found<'a>),
    /// The samples of an interval are complete; the next decision is based on them.
    Complete(&'a Status),
    /// Threads of a process changed nodes, or would in a dry run.
    ThreadsMoved(&'a ThreadsMoved),
    /// An interval's decision and the result of each move.
    Decided(Decided<'a>),
    /// The figures after an interval's decisions.
    Updated(&'a Status),
    /// The session is over.
    Ended(&'a Status),
}

/// Receives the events of a session.
pub trait Subscriber {
    /// Handles an event; `at`: time since the session began.
    ///
    /// # Errors
    /// A message of one line. The subscriber then receives no more events; the session goes on.
    fn receive(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String>;

    /// Takes a pending message for the user, if there is one.
    fn take_notice(&mut self) -> Option<String> {
        None
    }
}

/// Neighbouring pages that moved together, in units of the decision's page size.
#[derive(Clone, Copy, Debug)]
pub struct MovedPages {
    /// Id of the process.
    pub pid: u32,
    /// Number of the first page.
    pub page: PageNumber,
    /// Number of pages, each of the decision's size.
    pub count: u64,
    /// The node that they were on.
    pub from: NodeId,
    /// The node that they are on now.
    pub to: NodeId,
}

/// Pages that were found on another node than before.
pub struct Found<'a> {
    /// The pages and their nodes.
    pub moved: &'a MovedPages,
    /// The policy that moved them, or [`Migration::KERNEL`](nodewise_profile::Migration::KERNEL) or
    /// [`UNKNOWN`](nodewise_profile::Migration::UNKNOWN).
    pub by: &'a str,
    /// The policy's evidence for the move; empty for others.
    pub reason: Reason,
}

/// The decision and results of an interval.
pub struct Decided<'a> {
    /// The policy with its parameters.
    pub policy: &'a str,
    /// The decision and the results of its moves.
    pub interval: &'a Interval,
    /// Maps the process ordinals in page numbers to process ids.
    pub watch: &'a Watch,
    /// Base-2 logarithm of the decision's page size in base pages.
    pub page_shift: u32,
    /// Whether it is a dry run: nothing was moved.
    pub dry: bool,
}

/// Neighbouring pages that moved between the same nodes for the same reason.
#[derive(Debug)]
pub struct Run<'a> {
    /// The move of the first page.
    pub first: &'a Move,
    /// Length of the run in pages.
    pub pages: u64,
}

impl<'a> Decided<'a> {
    /// The pages that moved (in a dry run: would have), neighbours merged.
    #[must_use]
    pub fn runs(&self) -> Vec<Run<'a>> {
        let moves = &self.interval.decision.moves;
        let moved = |i: &usize| self.dry || self.interval.outcome.result(*i) == PageResult::Moved;
        runs((0..moves.len()).filter(moved).map(|i| &moves[i]), self.page_shift)
    }
}

impl Run<'_> {
    /// The run as a range of pages of this process.
    #[must_use]
    pub fn of(&self, pid: u32) -> MovedPages {
        MovedPages {
            pid,
            page: self.first.page,
            count: self.pages,
            from: self.first.from,
            to: self.first.to,
        }
    }
}

/// Consecutive pages between the same nodes for the same reason; moves ascend by page.
fn runs<'a>(moves: impl Iterator<Item = &'a Move>, page_shift: u32) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for each in moves {
        match runs.last_mut() {
            Some(run)
                if run.first.page.offset(run.pages << page_shift) == each.page
                    && (run.first.from, run.first.to) == (each.from, each.to)
                    && run.first.reason == each.reason =>
            {
                run.pages += 1;
            }
            _ => runs.push(Run {
                first: each,
                pages: 1,
            }),
        }
    }
    runs
}

/// The list of subscribers.
#[derive(Default)]
pub struct Subscribers(Vec<Box<dyn Subscriber>>);

impl Subscribers {
    pub fn add(&mut self, one: Box<dyn Subscriber>) {
        self.0.push(one);
    }

    /// Sends an event to all subscribers. One that fails is removed, and its message sent to the others. Returns the
    /// first failure.
    pub fn tell(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String> {
        let (mut notices, mut failed) = (Vec::new(), Ok(()));
        self.0.retain_mut(|one| {
            let result = one.receive(at, event);
            notices.extend(one.take_notice());
            let alive = result.is_ok();
            if let Err(line) = result {
                notices.push(line.clone());
                failed = std::mem::replace(&mut failed, Ok(())).and(Err(line));
            }
            alive
        });
        for line in notices {
            // A failure to report a failure is ignored.
            self.0
                .retain_mut(|one| one.receive(at, &Event::Notice(&line)).is_ok());
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn neighbours_between_the_same_nodes_share_a_line() {
        let each = |page: u64, to: u32| Move {
            index: 0,
            page: PageNumber(page),
            from: NodeId(0),
            to: NodeId(to),
            reason: Reason::default(),
        };
        let moves = [each(0, 1), each(512, 1), each(1024, 2), each(2048, 2)];
        let pages: Vec<u64> = runs(moves.iter(), 9).iter().map(|r| r.pages).collect();
        assert_eq!(pages, [2, 1, 1]);
    }

    /// Records the events that it receives, and fails at a given word.
    struct Listener(Arc<Mutex<Vec<String>>>, &'static str);

    impl Subscriber for Listener {
        fn receive(&mut self, _: Duration, event: &Event<'_>) -> Result<(), String> {
            let Event::Notice(line) = event else {
                return Ok(());
            };
            if *line == self.1 {
                return Err(format!("{line} was too much"));
            }
            self.0.lock().unwrap().push((*line).to_owned());
            Ok(())
        }
    }

    #[test]
    fn who_fails_is_dropped_and_the_others_are_told_why() {
        let (first, second) = (Arc::default(), Arc::default());
        let mut all = Subscribers::default();
        all.add(Box::new(Listener(Arc::clone(&first), "b")));
        all.add(Box::new(Listener(Arc::clone(&second), "-")));
        let told = ["a", "b", "c"].map(|line| all.tell(Duration::ZERO, &Event::Notice(line)));
        assert_eq!(told, [Ok(()), Err("b was too much".into()), Ok(())]);
        assert_eq!(*first.lock().unwrap(), ["a"]);
        assert_eq!(*second.lock().unwrap(), ["a", "b", "b was too much", "c"]);
    }
}
