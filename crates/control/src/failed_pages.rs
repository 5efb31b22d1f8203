//! Exponential back-off for pages whose move failed.

use crate::PageResult;
use nodewise_profile::PageNumber;
use std::collections::HashMap;

/// The last failure of a page.
#[derive(Clone, Copy, Debug)]
struct Failure {
    result: PageResult,
    times: u8,
    at: u32,
}

impl Failure {
    /// Whether the page is in cooldown, which is twice as many intervals after each further failure.
    fn in_cooldown(&self, interval: u64, cooldown: u32) -> bool {
        let age = u64::from((interval as u32).wrapping_sub(self.at));
        age <= u64::from(cooldown) << (self.times - 1).min(31)
    }
}

/// Pages whose last move failed; `most` of them at most.
#[derive(Debug)]
pub(crate) struct FailedPages {
    pages: HashMap<PageNumber, Failure>,
    most: usize,
    cooldown: u32,
}

impl FailedPages {
    pub fn new(most: usize, cooldown: u32) -> Self {
        Self {
            pages: HashMap::new(),
            most: most.max(1),
            cooldown,
        }
    }

    pub fn in_cooldown(&self, page: PageNumber, interval: u64) -> bool {
        let failure = self.pages.get(&page);
        failure.is_some_and(|f| f.in_cooldown(interval, self.cooldown))
    }

    /// Records a failure; returns the result of the previous one, if there was one.
    pub fn note(&mut self, page: PageNumber, result: PageResult, interval: u64) -> Option<PageResult> {
        let before = self.pages.get(&page).copied();
        if before.is_none() && self.pages.len() >= self.most {
            let cooldown = self.cooldown;
            self.pages.retain(|_, f| f.in_cooldown(interval, cooldown));
        }
        if before.is_some() || self.pages.len() < self.most {
            let times = before.map_or(0, |f| f.times).saturating_add(1);
            let at = interval as u32;
            self.pages.insert(page, Failure { result, times, at });
        }
        before.map(|f| f.result)
    }

    /// Removes a page that moved or no longer exists; returns the result of its last failure, if there was one.
    pub fn forget(&mut self, page: PageNumber) -> Option<PageResult> {
        self.pages.remove(&page).map(|f| f.result)
    }
}
