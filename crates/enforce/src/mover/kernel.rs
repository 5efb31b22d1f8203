//! The kernel operations that the mover needs, as a trait, so that tests can use a model of the kernel.

use super::run::BASE;
use nodewise_linux::Host;
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::pages::{self, CallError, PageStatus, Scope};

/// How many times a page protected for sampling is unprotected and queried again before it counts as busy.
const UNCOVERED: u32 = 4;

pub trait Kernel: Sync {
    /// The state of each page.
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError>;
    /// Moves pages to a node; returns the status of each, and the error that ended the call, if any.
    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>);
    /// Free bytes of a node, including what its file cache can give up; `None` if unknown.
    fn room(&self, node: u32) -> Option<u64>;
    /// Free bytes of a node that can be taken without any being reclaimed; `None` if unknown.
    fn spare(&self, node: u32) -> Option<u64>;
}

/// The running kernel, for one process.
pub struct Linux {
    pid: u32,
    host: Host,
    map: Option<Pagemap>,
    scope: Scope,
}

impl Linux {
    /// For a process of which pages in this scope are moved.
    pub fn of(pid: u32, scope: Scope) -> Self {
        Self {
            scope,
            pid,
            host: Host::default(),
            map: Pagemap::of(pid).ok(),
        }
    }

    /// Whether a page is resident, whatever `move_pages` reports.
    fn has(&self, address: u64) -> bool {
        let mut present = false;
        let look = |map: &Pagemap| map.each(address >> BASE, 1, |_, entry| present = entry.present());
        self.map.as_ref().map(look);
        present
    }
}

impl Kernel for Linux {
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError> {
        let ask = |addresses: &[u64]| pages::query(self.pid, addresses);
        uncover(
            addresses,
            ask,
            |address| self.has(address),
            |hidden| pages::unprotect(self.pid, hidden),
        )
    }

    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>) {
        pages::move_to(self.pid, addresses, node, self.scope)
    }

    fn room(&self, node: u32) -> Option<u64> {
        let memory = self.host.free_memory(node)?;
        let with_files = memory.free + memory.inactive_files + memory.active_files;
        Some(with_files.saturating_sub(memory.kept))
    }

    fn spare(&self, node: u32) -> Option<u64> {
        Some(self.host.free_memory(node)?.spare())
    }
}

/// Queries pages, again where necessary: old kernels (6.1) report a page that balancing has protected for sampling as
/// absent. Such a page is unprotected and queried again. If it is protected again by then it is busy, not absent.
fn uncover(
    addresses: &[u64],
    ask: impl Fn(&[u64]) -> Result<Vec<PageStatus>, CallError>,
    has: impl Fn(u64) -> bool,
    unprotect: impl Fn(&[u64]),
) -> Result<Vec<PageStatus>, CallError> {
    let mut statuses = ask(addresses)?;
    for left in (0..=UNCOVERED).rev() {
        let hidden = |i: &usize| statuses[*i] == PageStatus::Absent && has(addresses[*i]);
        let hidden: Vec<usize> = (0..statuses.len()).filter(hidden).collect();
        if hidden.is_empty() {
            break;
        }
        let asked: Vec<u64> = hidden.iter().map(|i| addresses[*i]).collect();
        let again = if left > 0 {
            unprotect(&asked);
            ask(&asked)?
        } else {
            vec![PageStatus::Busy; asked.len()]
        };
        hidden
            .into_iter()
            .zip(again)
            .for_each(|(i, status)| statuses[i] = status);
    }
    Ok(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    #[test]
    fn a_page_that_is_protected_again_and_again_is_busy_and_not_gone() {
        // How many more times each page is protected before the kernel reports its node.
        let protected = RefCell::new(HashMap::from([(0x1000, 0), (0x2000, 2), (0x3000, 1000)]));
        let ask = |addresses: &[u64]| {
            let status = |a: &u64| match protected.borrow().get(a) {
                Some(0) => PageStatus::On(1),
                _ => PageStatus::Absent,
            };
            Ok(addresses.iter().map(status).collect())
        };
        let has = |address| protected.borrow().contains_key(&address);
        let unprotect = |addresses: &[u64]| {
            addresses
                .iter()
                .for_each(|a| *protected.borrow_mut().get_mut(a).unwrap() -= 1);
        };
        let statuses = uncover(&[0x1000, 0x2000, 0x3000, 0x4000], ask, has, unprotect).unwrap();
        let expected = [
            PageStatus::On(1),
            PageStatus::On(1),
            PageStatus::Busy,
            PageStatus::Absent,
        ];
        assert_eq!(statuses, expected);
    }
}
