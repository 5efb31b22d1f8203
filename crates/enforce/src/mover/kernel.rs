//! What the mover asks of the kernel, so that laws about it can be held against a model.

use super::plan::BASE;
use nodewise_linux::Host;
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::pages::{self, CallError, PageStatus};

pub trait Kernel: Sync {
    /// Where pages are.
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError>;
    /// Moves pages to a node; says what it did until an error.
    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>);
    /// Bytes that a node can still take, its file cache given up; `None` if nobody knows.
    fn room(&self, node: u32) -> Option<u64>;
}

/// The kernel we run on, and one process.
pub struct Linux {
    pid: u32,
    host: Host,
    map: Option<Pagemap>,
}

impl Linux {
    pub fn of(pid: u32) -> Self {
        Self {
            pid,
            host: Host::default(),
            map: Pagemap::of(pid).ok(),
        }
    }

    /// Whether a page is there, whatever `move_pages` says of it.
    fn has(&self, address: u64) -> bool {
        let mut present = false;
        let look = |map: &Pagemap| map.each(address >> BASE, 1, |_, entry| present = entry.present());
        self.map.as_ref().map(look);
        present
    }
}

impl Kernel for Linux {
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError> {
        let mut statuses = pages::query(self.pid, addresses)?;
        let hidden = |i: &usize| statuses[*i] == PageStatus::Absent && self.has(addresses[*i]);
        let hidden: Vec<usize> = (0..statuses.len()).filter(hidden).collect();
        if !hidden.is_empty() {
            // The kernel's balancing has protected them to see who comes.
            let asked: Vec<u64> = hidden.iter().map(|i| addresses[*i]).collect();
            pages::let_go(self.pid, &asked);
            let again = pages::query(self.pid, &asked)?;
            hidden
                .into_iter()
                .zip(again)
                .for_each(|(i, status)| statuses[i] = status);
        }
        Ok(statuses)
    }

    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>) {
        pages::move_to(self.pid, addresses, node)
    }

    fn room(&self, node: u32) -> Option<u64> {
        let text = self.host.read("proc/zoneinfo").ok()?;
        Some(pages_left(&text, node) << BASE)
    }
}

/// Free pages and file cache of a node's zones, less what the kernel keeps free (`/proc/zoneinfo`).
fn pages_left(zoneinfo: &str, node: u32) -> u64 {
    let (mut here, mut left) = (false, 0i64);
    for line in zoneinfo.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Node", number, ..] => here = number.trim_end_matches(',').parse() == Ok(node),
            ["pages", "free", count] | ["nr_inactive_file" | "nr_active_file", count] if here => {
                left += count.parse().unwrap_or(0);
            }
            ["high", count] if here => left -= count.parse().unwrap_or(0),
            _ => {}
        }
    }
    left.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_has_left_is_the_sum_of_its_zones() {
        let text = "Node 0, zone    DMA32\n  per-node stats\n      nr_inactive_file 100\n      nr_active_file 20\n  \
            pages free     1000\n        min      11\n        high     17\n        protection: (0, 0)\n    pagesets\n    \
            cpu: 0\n              high:  378\nNode 0, zone   Normal\n  pages free     500\n        high     3\nNode 1, \
            zone   Normal\n  pages free     7\n        high     9\n";
        assert_eq!(
            (pages_left(text, 0), pages_left(text, 1), pages_left(text, 2)),
            (1600, 0, 0)
        );
    }
}
