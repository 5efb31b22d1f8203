//! Properties that all online policies guarantee, and the behaviour of each one.

use super::*;
use crate::fixtures::machine;
use proptest::prelude::*;

pub(super) const NODES: usize = 4;

#[derive(Clone, Debug)]
struct Page {
    number: u64,
    home: u32,
    counts: Vec<u64>,
    first: Option<u32>,
}

/// Pages as they are shown to a policy.
#[derive(Clone, Debug)]
pub(super) struct Pages(Vec<Page>);

impl Observed for Pages {
    fn nodes(&self) -> usize {
        NODES
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn page(&self, index: usize) -> PageNumber {
        PageNumber(self.0[index].number)
    }

    fn home(&self, index: usize) -> NodeId {
        NodeId(self.0[index].home)
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        counts.copy_from_slice(&self.0[index].counts);
    }

    fn first(&self, index: usize) -> Option<NodeId> {
        self.0[index].first.map(NodeId)
    }
}

impl Pages {
    pub(super) fn of(pages: &[(u64, u32, [u64; NODES])]) -> Self {
        let page = |&(number, home, counts): &(u64, u32, [u64; NODES])| Page {
            number,
            home,
            counts: counts.to_vec(),
            first: None,
        };
        Self(pages.iter().map(page).collect())
    }

    /// The same pages with counts multiplied by `factor`.
    pub(super) fn times(mut self, factor: u64) -> Self {
        for page in &mut self.0 {
            page.counts.iter_mut().for_each(|c| *c *= factor);
        }
        self
    }

    pub(super) fn apply(&mut self, moves: &[Move]) {
        for each in moves {
            self.0[each.index].home = each.to.0;
        }
    }
}

pub(super) fn policy(text: &str) -> Box<dyn MigrationPolicy> {
    migration_policy(text, &machine(NODES as u32, 2)).unwrap_or_else(|e| panic!("{e}"))
}

/// The moves that a policy proposes: (page number, node).
fn moves(text: &str, pages: &Pages) -> Vec<(u64, u32)> {
    let moves = policy(text).decide(pages);
    moves.iter().map(|m| (m.page.0, m.to.0)).collect()
}

fn error(text: &str, nodes: u32) -> String {
    match migration_policy(text, &machine(nodes, 2)) {
        Ok(policy) => panic!("{} is a policy", policy.name()),
        Err(error) => error.to_string(),
    }
}

pub(super) fn any_pages() -> impl Strategy<Value = Pages> {
    let count = prop_oneof![3 => Just(0u64), 2 => 0u64..9, 1 => 0u64..1000];
    let first = proptest::option::of(0..NODES as u32);
    let page = (
        1u64..20,
        0..NODES as u32,
        proptest::collection::vec(count, NODES),
        first,
    );
    proptest::collection::vec(page, 0..60).prop_map(|list| {
        let mut at = 1000;
        let place = |(gap, home, counts, first)| {
            at += gap;
            Page {
                number: at,
                home,
                counts,
                first,
            }
        };
        Pages(list.into_iter().map(place).collect())
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    let complete = MIGRATION_POLICIES.iter().filter(|k| k.is_complete());
    complete.map(|k| k.name).chain([
        "hot:1+2@64K:hysteresis=0.25",
        "hot:0",
        "out-w:threshold=1:window=2:weight=uniform",
        "mixed:0.5:shared=balance",
        "mixed:shared=stay",
        "adaptive:out-u",
        "out-u:against=all",
        "out-w:threshold=1:window=3:against=all",
        "carrefour:local=1:imbalance=0",
        "in-w:fixed=yes",
    ])
}

proptest! {
    #[test]
    fn moves_ascend_and_go_to_another_node_of_the_machine(pages in any_pages()) {
        for name in names() {
            let (mut policy, mut pages) = (policy(name), pages.clone());
            for _ in 0..3 {
                let moves = policy.decide(&pages);
                prop_assert!(moves.is_sorted_by(|a, b| a.index < b.index), "{}", name);
                for m in &moves {
                    let page = &pages.0[m.index];
                    prop_assert_eq!((m.page.0, m.from.0), (page.number, page.home));
                    prop_assert!(m.to != m.from && m.to.index() < NODES, "{}: {:?}", name, m);
                }
                pages.apply(&moves);
            }
        }
    }

    #[test]
    fn a_home_decides_without_its_own_accesses(pages in any_pages(), local in 0u64..1000) {
        let mut changed = pages.clone();
        for page in &mut changed.0 {
            page.counts[page.home as usize] = local;
        }
        for name in ["out-u", "out-w", "adaptive", "out-u:against=all", "out-w:against=all"] {
            prop_assert_eq!(policy(name).decide(&pages), policy(name).decide(&changed));
        }
    }

    #[test]
    fn a_home_decides_without_the_pages_of_others(pages in any_pages(), factor in 0u64..9) {
        let (mut changed, mine) = (pages.clone(), NodeId(1));
        for page in changed.0.iter_mut().filter(|p| p.home != mine.0) {
            page.counts.iter_mut().for_each(|c| *c = (*c + 1) * factor);
        }
        for name in ["out-u", "out-w", "out-u-local", "out-w-local", "adaptive", "out-w:against=all"] {
            let leaving = |pages: &Pages| {
                let all = policy(name).decide(pages);
                all.into_iter().filter(|m| m.from == mine).collect::<Vec<_>>()
            };
            prop_assert_eq!(leaving(&pages), leaving(&changed));
        }
    }

    #[test]
    fn an_accessor_decides_without_the_accesses_of_others(pages in any_pages(), factor in 0u64..9) {
        // Node 0 decides first, so that no other node can have taken a page before it.
        let mut changed = pages.clone();
        for page in &mut changed.0 {
            page.counts[1..].iter_mut().for_each(|c| *c = (*c + 1) * factor);
        }
        let coming = |pages: &Pages| {
            let all = policy("in-w").decide(pages);
            all.into_iter().filter(|m| m.to.0 == 0).collect::<Vec<_>>()
        };
        prop_assert_eq!(coming(&pages), coming(&changed));
    }

    #[test]
    fn pages_judged_in_stretches_are_judged_as_all_at_once(pages in any_pages(), chunk_pages in 1usize..20, radius in 0u64..40) {
        let window = Window { radius, weight: Weight::Linear };
        let (mut whole, mut parts) = (
            ByHome::new(String::new(), Adaptive::new(window, 2.0, 1.25, 2.85)),
            ByHome::new(String::new(), Adaptive::new(window, 2.0, 1.25, 2.85)),
        );
        parts.chunk_pages = chunk_pages;
        let mut pages = pages;
        for _ in 0..3 {
            let moves = whole.decide(&pages);
            prop_assert_eq!(&moves, &parts.decide(&pages));
            pages.apply(&moves);
        }
    }

    #[test]
    fn the_literal_threshold_can_never_hold_and_the_one_we_read_can(counts in proptest::collection::vec(0u64..1_000_000, 3)) {
        let (max, sum) = (*counts.iter().max().unwrap(), counts.iter().sum::<u64>());
        // max − average > 2 × average, in thirds.
        prop_assert!(3 * max <= sum + 2 * sum);
        let judged = against_remote(NodeId(0), &[0, max, 0, 0], 2.0);
        prop_assert_eq!(judged.is_some(), max > 0);
    }

    #[test]
    fn out_u_moves_what_one_remote_node_uses_twice_as_much_as_the_others_together(pages in any_pages()) {
        let moved: Vec<_> = policy("out-u").decide(&pages).iter().map(|m| m.index).collect();
        for (index, page) in pages.0.iter().enumerate() {
            let mut remote = page.counts.clone();
            remote.remove(page.home as usize);
            let (max, sum) = (*remote.iter().max().unwrap(), remote.iter().sum::<u64>());
            prop_assert_eq!(moved.contains(&index), max > 2 * (sum - max));
        }
    }

    #[test]
    fn out_w_without_a_window_is_out_u(pages in any_pages()) {
        prop_assert_eq!(moves("out-w:window=0", &pages), moves("out-u", &pages));
        prop_assert_eq!(moves("out-w-local:window=0", &pages), moves("out-u-local", &pages));
    }

    #[test]
    fn the_parameters_that_help_lists_are_the_defaults(pages in any_pages()) {
        for kind in MIGRATION_POLICIES
            .iter()
            .filter(|k| !k.parameters.is_empty() && k.is_complete()) {
            let written = format!("{}:{}", kind.name, kind.parameters);
            prop_assert_eq!(moves(&written, &pages), moves(kind.name, &pages));
        }
    }

    #[test]
    fn what_sees_everything_settles_under_a_steady_pattern(pages in any_pages()) {
        for name in ["dominant", "dominant:hysteresis=0", "mixed", "mixed:0.5:shared=balance", "carrefour"] {
            let (mut policy, mut pages, mut moved) = (policy(name), pages.clone(), vec![0; pages.len()]);
            for _ in 0..4 {
                let moves = policy.decide(&pages);
                moves.iter().for_each(|m| moved[m.index] += 1);
                pages.apply(&moves);
            }
            prop_assert!(moved.iter().all(|m| *m <= 1), "{}: {:?}", name, moved);
        }
    }

    #[test]
    fn dominant_without_hysteresis_is_the_best_mapping(pages in any_pages()) {
        let mut pages = pages;
        let moves = policy("dominant:hysteresis=0").decide(&pages);
        pages.apply(&moves);
        for page in &pages.0 {
            prop_assert_eq!(page.counts[page.home as usize], *page.counts.iter().max().unwrap());
        }
    }
}

#[test]
fn a_home_that_cannot_see_itself_sends_a_page_of_two_nodes_back_and_forth() {
    let mut pages = Pages::of(&[(1, 3, [10, 100, 0, 0])]);
    let mut out_u = policy("out-u");
    let mut went = || {
        let moves = out_u.decide(&pages);
        pages.apply(&moves);
        pages.0[0].home
    };
    assert_eq!([went(), went(), went()], [1, 0, 1]);
    let mut pages = Pages::of(&[(1, 3, [10, 100, 0, 0])]);
    let mut local = policy("out-u-local");
    let moves = local.decide(&pages);
    pages.apply(&moves);
    assert_eq!((pages.0[0].home, local.decide(&pages).len()), (1, 0));
}

#[test]
fn against_all_pages_a_page_of_few_accesses_stays_and_does_not_bounce() {
    let border = (1, 0, [100, 3, 0, 0]);
    let mut pages = Pages::of(&[
        border,
        (2, 0, [0, 90, 0, 0]),
        (3, 0, [0, 0, 0, 0]),
        (4, 0, [0, 0, 0, 0]),
    ]);
    assert_eq!(moves("out-u", &pages), [(1, 1), (2, 1)]);
    assert_eq!(moves("out-u:against=all", &pages), [(2, 1)]);
    pages.0[1].home = 1;
    pages.0[0].counts = vec![100, 3, 3, 3];
    assert_eq!(moves("out-u:against=all", &pages), []);
}

#[test]
fn neighbours_on_the_same_home_decide_for_a_page_that_hardly_anybody_has_used() {
    let pages = Pages::of(&[(4, 0, [0, 9, 0, 0]), (8, 0, [0, 1, 1, 0]), (12, 0, [0, 9, 0, 0])]);
    assert_eq!(moves("out-u", &pages), [(4, 1), (12, 1)]);
    assert_eq!(moves("out-w", &pages), [(4, 1), (8, 1), (12, 1)]);
    // Pages on other homes must not affect this one.
    let mut others = pages.clone();
    (others.0[0].home, others.0[2].home) = (3, 3);
    assert!(moves("out-w", &others).iter().all(|m| m.0 != 8));
}

#[test]
fn the_first_node_to_decide_fetches_a_page_whoever_uses_it_most() {
    let mut list = vec![(100, 3, [30, 90, 0, 0])];
    list.extend((200..300).step_by(20).map(|n| (n, 3, [1, 1, 0, 0])));
    let pages = Pages::of(&list);
    assert_eq!(moves("in-w", &pages), [(100, 0)]);
    assert_eq!(policy("in-w").messages(NODES, 1), 3);
}

#[test]
fn a_fixed_page_stays_with_the_first_node_that_fetched_it() {
    let at = |home| {
        let mut list = vec![(100, home, [30, 90, 0, 0])];
        list.extend((200..300).step_by(20).map(|n| (n, 3, [1, 1, 0, 0])));
        Pages::of(&list)
    };
    for (name, again) in [("in-w", vec![(100, 1)]), ("in-w:fixed=yes", vec![])] {
        let mut policy = policy(name);
        let mut moves = |home| -> Vec<_> {
            let moves = policy.decide(&at(home));
            moves.iter().map(|m| (m.page.0, m.to.0)).collect()
        };
        assert_eq!(moves(3), [(100, 0)], "{name}");
        // The page was not moved: it is proposed again.
        assert_eq!(moves(3), [(100, 0)], "{name}");
        assert_eq!(moves(0), again, "{name}");
        assert_eq!(moves(0), again, "{name}");
        // Another node took it away.
        assert_eq!(moves(3), [(100, 0)], "{name}");
    }
}

#[test]
fn next_touch_follows_the_first_of_the_interval() {
    let mut pages = Pages::of(&[(1, 0, [9, 1, 0, 0]), (2, 0, [9, 1, 0, 0]), (3, 1, [9, 1, 0, 0])]);
    (pages.0[0].first, pages.0[2].first) = (Some(1), Some(1));
    assert_eq!(moves("next-touch", &pages), [(1, 1)]);
}

#[test]
fn carrefour_gathers_only_while_much_is_remote_and_spreads_only_while_controllers_differ() {
    let mine = (2, 0, [0, 0, 5, 0]);
    let shared = |number| (number, 0, [50, 50, 50, 50]);
    let skewed = Pages::of(&[mine, shared(3), shared(4), shared(5)]);
    assert_eq!(moves("carrefour", &skewed), [(2, 2), (3, 3), (5, 1)]);
    let local = Pages::of(&[
        mine,
        (3, 1, [0, 900, 0, 0]),
        (4, 2, [0, 0, 900, 0]),
        (5, 3, [0, 0, 0, 900]),
        (6, 0, [900, 0, 0, 0]),
    ]);
    assert_eq!(moves("carrefour", &local), []);
}

#[test]
fn mixed_interleaves_balances_or_leaves_what_several_nodes_use() {
    let pages = Pages::of(&[
        (1, 0, [0, 0, 95, 5]),
        (2, 0, [0, 0, 80, 20]),
        (3, 0, [30, 30, 30, 10]),
    ]);
    assert_eq!(moves("mixed", &pages), [(1, 2), (2, 2), (3, 3)]);
    assert_eq!(moves("mixed:0.99:shared=stay", &pages), []);
    // A page on its dominant node stays while its exclusivity is within the band below the limit.
    let band = Pages::of(&[(4, 2, [0, 0, 88, 12]), (8, 2, [0, 0, 80, 20])]);
    assert_eq!(moves("mixed", &band), [(8, 0)]);
    let crowded = Pages::of(&[
        (1, 0, [10, 20, 0, 0]),
        (2, 0, [10, 20, 0, 0]),
        (3, 0, [10, 0, 0, 0]),
    ]);
    assert_eq!(moves("mixed:shared=balance", &crowded), []);
    let roomy = Pages::of(&[
        (1, 0, [1, 2, 0, 0]),
        (2, 0, [10, 20, 0, 0]),
        (3, 2, [0, 0, 30, 0]),
    ]);
    assert_eq!(moves("mixed:shared=balance", &roomy), [(1, 1)]);
}

#[test]
fn a_home_asks_for_more_when_its_pages_come_back_and_for_less_when_they_do_not() {
    let adaptive = || Adaptive::new(Window::PAGE, 2.0, 1.25, 2.85);
    let pages = Pages::of(&[(1, 0, [0, 9, 0, 0]), (2, 0, [0, 9, 0, 0])]);
    let away = Pages::of(&[(1, 1, [0, 9, 0, 0]), (2, 1, [0, 9, 0, 0])]);
    let threshold = |shown: &[&Pages]| {
        let mut by_home = ByHome::new(String::new(), adaptive());
        shown.iter().for_each(|p| drop(by_home.decide(*p)));
        by_home.homes()[0].threshold()
    };
    assert!(threshold(&[&pages, &away, &away]) < 2.0);
    assert!(threshold(&[&pages, &away, &pages]) > 2.0);
    // A page that was held back has not come back.
    assert!(threshold(&[&pages, &pages, &pages]) < 2.0);
    let mut long = vec![&pages];
    long.extend(std::iter::repeat_n(&away, 99));
    assert!((threshold(&long) - 1.25).abs() < 1e-9);
}

#[test]
fn names_are_kept_as_written() {
    for text in names() {
        assert_eq!(policy(text).name(), text);
        assert_eq!(policy(&format!("balance:{text}")).name(), text);
    }
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    assert_eq!(
        error("out", 4),
        "unknown online policy `out` (several begin so: out-u, out-w, out-u-local, out-w-local); known: out-u, out-w, out-u-local, \
         out-w-local, in-w, next-touch, dominant, carrefour, mixed, adaptive, hot"
    );
    assert_eq!(
        error("out-w:threshold=x", 4),
        "out-w:threshold=x: threshold is a positive number, such as 2"
    );
    assert_eq!(
        error("out-w:windov=3", 4),
        "out-w:windov=3: unknown parameter; write out-w:threshold=2:window=8:weight=linear:against=page"
    );
    assert_eq!(
        error("next-touch:1", 4),
        "next-touch:1: unknown parameter; it takes none"
    );
    assert_eq!(
        error("out-u", 3),
        "out-u:threshold=2: no node can have more than 2 times the average of 2 remote nodes; write a lower \
         threshold, or take out-w-local or dominant, which see the home's accesses"
    );
    for (text, nodes) in [
        ("out-w", 2),
        ("out-u:against=all", 2),
        ("adaptive", 2),
        ("mixed:1.5", 4),
        ("adaptive:in-w", 4),
        ("out-w:window=5000", 4),
    ] {
        assert!(!error(text, nodes).contains('\n'));
    }
}
