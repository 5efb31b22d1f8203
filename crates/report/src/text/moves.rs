//! Sentences on the pages that were moved while the program ran.

use crate::{Moves, count, percent};
use nodewise_analysis::figures::{and_more, between, exact, grouped};
use nodewise_input::escaped;
use nodewise_profile::Migration;

/// Largest number of node pairs, and of objects, that are named.
const MAX_NAMED: usize = 3;

/// Sentences on who moved which pages between which nodes, then on ping-pongs and incorrect moves, then on prevented
/// moves.
pub fn sentences(moves: &Moves) -> Vec<String> {
    let would = moves.simulated.is_some();
    let mut all = vec![match &moves.simulated {
        Some(policy) => simulated(moves, policy),
        None => who(moves),
    }];
    if moves.ours + moves.kernel + moves.others > 0 {
        all.push(format!("{}; {}.", busiest(moves), objects(moves)));
        all.push(returning(moves));
        if let Some(local) = moves.local_fraction {
            all.push(match moves.local_range {
                Some(range) => format!(
                    "With pages where moves {} them, local accesses: {}.",
                    if would { "would have" } else { "had" },
                    between(range, 0.0)
                ),
                None => format!(
                    "With pages where moves {} them, {} of the accesses {} local.",
                    if would { "would have" } else { "had" },
                    percent(local),
                    if would { "would be" } else { "were" },
                ),
            });
        }
    }
    if let Some(counted) = moves.kernel_counted {
        all.push(match counted {
            0 => "The kernel's own balancing moved nothing.".to_owned(),
            n => format!(
                "The kernel's own balancing moved {} by its own count.",
                exact(n, "page")
            ),
        });
    }
    if !moves.held_back.is_empty() {
        let causes = moves.held_back.iter();
        let causes: Vec<_> = causes
            .map(|h| format!("{} {}", escaped(&h.cause), count(h.pages)))
            .collect();
        let times = if would {
            ", once for each slice in which they were proposed"
        } else {
            ""
        };
        all.push(format!("Held back, in pages{times}: {}.", causes.join(", ")));
    }
    all
}

/// Sentence on the moves that a simulated policy would make.
fn simulated(moves: &Moves, policy: &str) -> String {
    let policy = escaped(policy);
    match moves.pages {
        0 => format!("Simulated under {policy} from first-touch: no page would move."),
        pages => format!(
            "Simulated under {policy} from first-touch: {} of 4 KiB would move, in {}; nothing was moved in this run.",
            exact(pages, "page"),
            exact(moves.ours, "move"),
        ),
    }
}

fn who(moves: &Moves) -> String {
    let mut by: Vec<_> = moves.by.iter().collect();
    let strangers = [Migration::KERNEL, Migration::UNKNOWN];
    by.sort_by_key(|b| (strangers.contains(&b.by.as_str()), std::cmp::Reverse(b.pages)));
    let by: Vec<_> = by
        .iter()
        .map(|b| format!("{} by {}", grouped(b.pages), escaped(&b.by)))
        .collect();
    if by.is_empty() {
        return "No page is recorded to have moved.".to_owned();
    }
    let all = moves.ours + moves.kernel + moves.others;
    format!(
        "Moved while it ran: {} ({} of 4 KiB, {} in all).",
        by.join(", "),
        exact(moves.pages, "page"),
        exact(all, "move"),
    )
}

/// Names the pairs of nodes with most moves.
fn busiest(moves: &Moves) -> String {
    let mut pairs: Vec<(u64, usize, usize)> = Vec::new();
    for (from, row) in moves.matrix.iter().enumerate() {
        for (to, ours) in row.iter().enumerate() {
            let others = moves.kernel_matrix[from][to] + moves.others_matrix[from][to];
            pairs.push((ours + others, from, to));
        }
    }
    pairs.retain(|p| p.0 > 0);
    pairs.sort_by_key(|&(pages, from, to)| (std::cmp::Reverse(pages), from, to));
    let shown = pairs.iter().take(MAX_NAMED);
    let shown: Vec<_> = shown
        .map(|(n, from, to)| format!("{from}→{to} {}", count(*n)))
        .collect();
    let more = and_more(pairs.len() - shown.len(), "pair", "--json");
    format!("Most from node to node: {}{more}", shown.join(", "))
}

fn objects(moves: &Moves) -> String {
    let shown = moves.objects.iter().take(MAX_NAMED);
    let shown: Vec<_> = shown
        .map(|o| format!("{} {}", escaped(&o.name), count(o.ours + o.kernel + o.others)))
        .collect();
    let more = and_more(moves.objects.len() - shown.len(), "object", "--json");
    format!("of {}{more}", shown.join(", "))
}

fn returning(moves: &Moves) -> String {
    let [bring, go, take] = match moves.simulated {
        Some(_) => ["would bring", "would go", "would take"],
        None => ["brought", "went", "took"],
    };
    let incorrect = match moves.incorrect {
        Some(n) => format!("{} {take} it from the node that used it most", grouped(n)),
        None => "whether any was wrong is not known, as no policy saw the home's own accesses".to_owned(),
    };
    format!(
        "Of the moves, {} {bring} a page back (ping-pong), {} {go} on to yet another node; {incorrect}.",
        grouped(moves.ping_pongs),
        grouped(moves.multiple)
    )
}
