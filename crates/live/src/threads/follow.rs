//! Full migration: moves all memory after threads whose dynamic migration was not enough (AsymSched 4.2).

use crate::topology::Topology;
use nodewise_control::asym::{FullMigration, dealt};
use nodewise_enforce::mover::{Pair, Plan};
use nodewise_linux::pages::Scope;
use nodewise_machine::NodeId;
use nodewise_placement::{Move, Reason};
use nodewise_profile::PageNumber;

/// All pages of a process on nodes that it has left, with their targets, in blocks by the targets' shares. `shift`:
/// the decision's page size; `process`: its ordinal in page numbers. Empty if the process has ended.
pub fn pages_of(full: &FullMigration, process: u16, topology: &Topology, shift: u32) -> Vec<Move> {
    let os = |node: NodeId| topology.machine.nodes[node.index()].os_index;
    let mut moves = Vec::new();
    for (from, goals) in &full.from {
        let Some((first, _)) = goals.first() else {
            continue;
        };
        let plan = Plan::of_nodes(full.application, &[(os(*from), os(*first))], Scope::Exclusive)
            .unwrap_or_default();
        let pages = pages(&plan.pairs, process, shift);
        let to = dealt(pages.len(), goals);
        moves.extend(pages.into_iter().zip(to).map(|(page, to)| Move {
            index: 0,
            page,
            from: *from,
            to,
            reason: Reason::default(),
        }));
    }
    moves.sort_unstable_by_key(|m| m.page);
    moves.dedup_by_key(|m| m.page);
    moves
}

/// Distinct pages of the decision's size, ascending.
fn pages(pairs: &[Pair], process: u16, shift: u32) -> Vec<PageNumber> {
    let runs = pairs.iter().flat_map(|p| &p.runs);
    let addresses = runs.flat_map(|r| r.addresses());
    let mut pages: Vec<PageNumber> = addresses
        .map(|a| PageNumber::of_address(process, a).align_down(shift))
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_enforce::mover::Run;

    #[test]
    fn a_huge_page_is_one() {
        let run = |address, count, shift| Run {
            address,
            count,
            shift,
        };
        let pair = Pair {
            from: 0,
            to: 1,
            runs: vec![run(0x40_0000, 512, 12), run(0x20_3000, 2, 12)],
        };
        let huge = pages(std::slice::from_ref(&pair), 3, 9);
        let first = |address| PageNumber::of_address(3, address);
        assert_eq!(huge, [first(0x20_0000), first(0x40_0000)]);
        assert_eq!(pages(&[pair], 3, 0).len(), 514);
    }
}
