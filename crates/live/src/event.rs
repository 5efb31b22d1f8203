//! Typed events of a session, and their subscribers.

use crate::status::Status;
use nodewise_control::{Interval, PageResult};
use nodewise_machine::NodeId;
use nodewise_observe::faults::Watch;
use nodewise_placement::{Move, Reason};
use nodewise_profile::PageNumber;
use std::time::Duration;

/// An event of a session.
pub enum Event<'a> {
    /// Something the user should know: one line.
    Notice(&'a str),
    /// Decisions are paused, or made again.
    Paused(bool),
    /// The last look's samples, first touches, processes that began and ended.
    Sampled(&'a Watch),
    /// Pages were found on another node than before, without a decision of this interval.
    Found(Found<'a>),
    /// The samples of an interval are complete; what is decided next rests on them.
    Complete(&'a Status),
    /// Threads of a process changed nodes, or would in a dry run.
    ThreadsMoved(&'a ThreadsMoved),
    /// Pages were judged; each move has its fate.
    Decided(Decided<'a>),
    /// The figures after an interval's decisions.
    Updated(&'a Status),
    /// The session is over.
    Ended(&'a Status),
}

/// Somebody who is told what happens.
pub trait Subscriber {
    /// `at`: since the session began.
    ///
    /// # Errors
    /// One line for the user. The subscriber hears nothing more; all else goes on.
    fn receive(&mut self, at: Duration, event: &Event<'_>) -> Result<(), String>;

    /// Something for the user to know, once.
    fn take_notice(&mut self) -> Option<String> {
        None
    }
}

/// Neighbouring pages that changed nodes, in pages that decisions are made for.
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

/// Pages that were found elsewhere.
pub struct Found<'a> {
    /// The pages and their nodes.
    pub moved: &'a MovedPages,
    /// The policy, or [`Migration::KERNEL`](nodewise_profile::Migration::KERNEL) or
    /// [`UNKNOWN`](nodewise_profile::Migration::UNKNOWN).
    pub by: &'a str,
    /// Why the policy moved them, if it did.
    pub reason: Reason,
}

/// Threads of a process that changed nodes.
#[derive(Clone, Debug)]
pub struct ThreadsMoved {
    /// Id of the process.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// The kernel's numbers of the nodes they left, as a list.
    pub from: String,
    /// The same of those they run on now.
    pub to: String,
    /// Weighted bandwidth before and after (AsymSched's P_wbw), MB/s.
    pub bandwidth: (f64, f64),
    /// They would have moved.
    pub dry: bool,
}

/// What an interval decided and did.
pub struct Decided<'a> {
    /// The policy with its parameters.
    pub policy: &'a str,
    /// The decision and the results of its moves.
    pub interval: &'a Interval,
    /// What the processes' numbers in page numbers stand for.
    pub watch: &'a Watch,
    /// log2 of base pages a decision is made for.
    pub page_shift: u32,
    /// Nothing was moved: decisions are the news, not what became of them.
    pub dry: bool,
}

/// Neighbours that moved between the same nodes for the same reason.
#[derive(Debug)]
pub struct Run<'a> {
    /// The first page's move.
    pub first: &'a Move,
    /// Length of the run in pages.
    pub pages: u64,
}

impl<'a> Decided<'a> {
    /// What moved, or would have in a dry run, neighbours together.
    #[must_use]
    pub fn runs(&self) -> Vec<Run<'a>> {
        let moves = &self.interval.decision.moves;
        let moved = |i: &usize| self.dry || self.interval.outcome.result(*i) == PageResult::Moved;
        runs((0..moves.len()).filter(moved).map(|i| &moves[i]), self.page_shift)
    }
}

impl Run<'_> {
    /// As pages of this process.
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

/// All who are told.
#[derive(Default)]
pub struct Subscribers(Vec<Box<dyn Subscriber>>);

impl Subscribers {
    pub fn add(&mut self, one: Box<dyn Subscriber>) {
        self.0.push(one);
    }

    /// Who fails is told nothing more; why goes to the others. The first failure, if any.
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
            // Who fails to tell that somebody failed has nobody left to tell it to.
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

    /// Writes down what it hears, and fails at a word.
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
