//! Pages that were to move and did not.

use crate::PageResult;
use nodewise_profile::PageNumber;
use std::collections::HashMap;

/// Why a page stayed the last time it was tried.
#[derive(Clone, Copy, Debug)]
struct Failure {
    result: PageResult,
    times: u8,
    at: u32,
}

impl Failure {
    /// Whether it is too early to try again: twice as many intervals after each failure.
    fn rests(&self, interval: u64, rest: u32) -> bool {
        let age = u64::from((interval as u32).wrapping_sub(self.at));
        age <= u64::from(rest) << (self.times - 1).min(31)
    }
}

/// Pages that stayed when they were last to move, at most so many.
#[derive(Debug)]
pub(crate) struct Stayed {
    pages: HashMap<PageNumber, Failure>,
    most: usize,
    rest: u32,
}

impl Stayed {
    pub fn new(most: usize, rest: u32) -> Self {
        Self {
            pages: HashMap::new(),
            most: most.max(1),
            rest,
        }
    }

    pub fn rests(&self, page: PageNumber, interval: u64) -> bool {
        let failure = self.pages.get(&page);
        failure.is_some_and(|f| f.rests(interval, self.rest))
    }

    /// It stayed; what was its fate before, if it had stayed then.
    pub fn note(&mut self, page: PageNumber, result: PageResult, interval: u64) -> Option<PageResult> {
        let before = self.pages.get(&page).copied();
        if before.is_none() && self.pages.len() >= self.most {
            let rest = self.rest;
            self.pages.retain(|_, f| f.rests(interval, rest));
        }
        if before.is_some() || self.pages.len() < self.most {
            let times = before.map_or(0, |f| f.times).saturating_add(1);
            let at = interval as u32;
            self.pages.insert(page, Failure { result, times, at });
        }
        before.map(|f| f.result)
    }

    /// It moved, or is no more; what was its fate, if it had stayed.
    pub fn forget(&mut self, page: PageNumber) -> Option<PageResult> {
        self.pages.remove(&page).map(|f| f.result)
    }
}
