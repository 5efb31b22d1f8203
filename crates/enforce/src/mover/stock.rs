//! Moves pages by the kernel's own system call, in one thread, for comparison.

use super::moved::Moved;
use super::plan::Plan;
use super::refusal;
use super::run::{BASE, Run};
use super::stayed::{Cause, Stayed};
use crate::EnforceError;
use nodewise_linux::clock;
use nodewise_linux::pages::{self, CallError, PageStatus};
use std::time::Instant;

/// Calls `migrate_pages(2)` on the process of a plan, for the pairs of nodes that the plan was made for, and then looks
/// up the nodes of the plan's pages. The kernel uses both lists in ascending order. With the privilege to do so it also
/// moves shared pages, which are not in the plan.
///
/// # Errors
/// We may not change the process, or it may not use a node.
pub fn migrate_pages(plan: &Plan, pairs: &[(u32, u32)]) -> Result<Moved, EnforceError> {
    let start = Instant::now();
    let from = pairs.iter().map(|p| p.0).collect();
    let to = pairs.iter().map(|p| p.1).collect();
    let answer = pages::migrate_all(plan.pid, &from, &to);
    let ns = clock::nanoseconds(start.elapsed());
    let mut moved = Moved::nothing_of(plan);
    match answer {
        Err(CallError::Gone) => moved.gone = true,
        Err(CallError::NoRoom) | Ok(_) => {}
        Err(error) => return Err(refusal::explain(plan.pid, error)),
    }
    (moved.ns, moved.workers) = (ns, 1);
    for (at, pair) in plan.pairs.iter().enumerate() {
        for run in &pair.runs {
            let (there, stayed) = look(plan.pid, run, pair.to);
            moved.pages += there;
            moved.pairs[at].pages += there;
            moved.stayed.extend(stayed);
        }
    }
    moved.stayed.sort();
    Ok(moved)
}

/// Number of the run's pages on the target node, and the pages that are not.
fn look(pid: u32, run: &Run, to: u32) -> (u64, Stayed) {
    let addresses: Vec<u64> = run.addresses().collect();
    let (mut there, mut stayed) = (0, Stayed::default());
    let weight = 1 << (run.shift - BASE);
    let statuses =
        pages::query(pid, &addresses).unwrap_or_else(|_| vec![PageStatus::Absent; addresses.len()]);
    for (address, status) in addresses.iter().zip(statuses) {
        match status {
            PageStatus::On(node) if node == to => there += weight,
            PageStatus::On(_) => stayed.add_page(*address, run.shift, Cause::Busy),
            _ => stayed.add_page(*address, run.shift, Cause::Gone),
        }
    }
    (there, stayed)
}
