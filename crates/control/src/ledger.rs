//! Counts of page moves, as in Tao, Schulz and Karl (ARS).

use crate::PageResult;
use nodewise_machine::NodeId;
use nodewise_profile::{MoveKind, PageNumber};
use std::collections::{HashMap, VecDeque};

/// Counts of page moves (Tao, Schulz and Karl, Table 1).
///
/// Every move is a page's first, a ping-pong or a further one that does not return, so that
/// `migrations` = pages moved + `ping_pongs` + `multiple`, as long as no page was dropped from the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Number of moves, each move of a page once.
    pub migrations: u64,
    /// Moves back to where the page's last move came from: A→B→A.
    pub ping_pongs: u64,
    /// Further moves of a page that do not return: A→B→C.
    pub multiple: u64,
    /// Moves away from the node that accessed the page most; `None` without exact counts.
    pub incorrect: Option<u64>,
    /// `pages[i]`: number of pages that moved i + 1 times.
    pub pages: Vec<u64>,
    /// Messages between nodes that a distributed implementation of the policy would send.
    pub messages: u64,
    /// Bytes of all moves.
    pub bytes: u64,
    /// Time spent on moving, failures included, nanoseconds.
    pub spent_ns: u64,
    /// Number of moves tried, by result in the order of [`PageResult::ALL`].
    pub results: [u64; PageResult::ALL.len()],
    /// Number of pages whose last move failed, by its result in the order of [`PageResult::ALL`].
    pub stayed: [u64; PageResult::ALL.len()],
    /// Pages dropped from the history; a later move counts as their first.
    pub forgotten: u64,
}

impl Ledger {
    /// Moves with this result.
    #[must_use]
    pub fn result(&self, result: PageResult) -> u64 {
        self.results[result as usize]
    }

    /// Pages whose last move failed with this result.
    #[must_use]
    pub fn stayed(&self, result: PageResult) -> u64 {
        self.stayed[result as usize]
    }

    /// Adds the result of a move. `stayed`: the result of the page's last move if that one failed.
    pub(crate) fn record_result(&mut self, result: PageResult, stayed: Option<PageResult>) {
        self.results[result as usize] += 1;
        if let Some(before) = stayed {
            self.stayed[before as usize] -= 1;
        }
        self.stayed[result as usize] += u64::from(!result.arrived());
    }

    /// Adds a move; `before`: the page's earlier moves.
    pub(crate) fn enter(&mut self, to: NodeId, before: Option<&Past>, incorrect: Option<bool>) {
        self.migrations += 1;
        let times = before.map_or(0, |p| usize::from(p.moves));
        match MoveKind::of(before.map(Past::left), to) {
            MoveKind::First => {}
            MoveKind::PingPong => self.ping_pongs += 1,
            MoveKind::Multiple => self.multiple += 1,
        }
        if let Some(wrong) = incorrect {
            *self.incorrect.get_or_insert(0) += u64::from(wrong);
        }
        if times > 0 {
            self.pages[times - 1] -= 1;
        }
        if self.pages.len() <= times {
            self.pages.resize(times + 1, 0);
        }
        self.pages[times] += 1;
    }
}

/// The moves of a page so far, in eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    /// Number of moves, at most 65,535.
    pub moves: u16,
    left: u16,
    at: u32,
}

impl Past {
    /// The node that the last move left.
    pub fn left(&self) -> NodeId {
        NodeId(u32::from(self.left))
    }

    /// Intervals since the page's last move.
    pub fn age(&self, interval: u64) -> u64 {
        u64::from((interval as u32).wrapping_sub(self.at))
    }

    /// Whether the page is in cooldown, which is twice as many intervals after each further move.
    pub fn in_cooldown(&self, interval: u64, cooldown: u32) -> bool {
        self.age(interval) <= u64::from(cooldown) << (self.moves - 1).min(31)
    }
}

/// The earlier moves of the pages that moved last, a limited number of them.
#[derive(Debug)]
pub(crate) struct History {
    pages: HashMap<PageNumber, Past>,
    /// Pages in the order of their moves, with the interval. An entry is obsolete if the page's record has a later
    /// interval.
    order: VecDeque<(u32, PageNumber)>,
    most: usize,
}

impl History {
    pub fn new(most: usize) -> Self {
        Self {
            pages: HashMap::new(),
            order: VecDeque::new(),
            most: most.max(1),
        }
    }

    pub fn of(&self, page: PageNumber) -> Option<&Past> {
        self.pages.get(&page)
    }

    /// Notes a move; returns how many pages were forgotten for it.
    pub fn note(&mut self, page: PageNumber, left: NodeId, interval: u64) -> u64 {
        let moves = self.of(page).map_or(0, |p| p.moves).saturating_add(1);
        let (left, at) = (left.0 as u16, interval as u32);
        self.pages.insert(page, Past { moves, left, at });
        self.order.push_back((at, page));
        let mut forgotten = 0;
        while self.pages.len() > self.most || self.order.len() > self.most.saturating_mul(2) {
            let Some((at, page)) = self.order.pop_front() else {
                break;
            };
            let last = self.of(page).is_some_and(|p| p.at == at);
            if last {
                self.pages.remove(&page);
                forgotten += 1;
            }
        }
        forgotten
    }
}
