//! `runtime/distribution.h` and its Rust mirror give every page the same node.

mod compiled;

use compiled::Program;
use nodewise_machine::NodeId;
use nodewise_placement::{Dealt, Distribution, ObjectPage, Order, cumulative};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const PROGRAM: &str = r#"
#include "distribution.h"
#include <stdio.h>
#include <inttypes.h>
int main(void) {
    nw_distribution rule = {0};
    uint32_t threads, nodes[256];
    nw_part parts[256];
    nw_page page = {0};
    while (scanf("%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu32, &rule.kind, &rule.repeat,
                 &rule.parameter, &rule.count, &threads) == 5) {
        for (uint32_t i = 0; i < rule.count; i++) scanf("%" SCNu32 " %la", &parts[i].node, &parts[i].until);
        for (uint32_t i = 0; i < threads; i++) scanf("%" SCNu32, &nodes[i]);
        scanf("%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32, &page.index, &page.pages, &page.number,
              &page.turn, &page.thread);
        printf("%" PRIu32 "\n", nw_node_of(&rule, parts, nodes, threads, page));
    }
}
"#;

struct Case {
    distribution: Distribution,
    threads: Vec<u32>,
    page: ObjectPage,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.distribution, self.threads, self.page)
    }
}

fn distributions() -> impl Strategy<Value = Distribution> {
    let node = || (0u32..64).prop_map(NodeId);
    let shares = proptest::collection::vec((node(), 1u32..100), 1..9).prop_map(|parts| {
        let total: u32 = parts.iter().map(|p| p.1).sum();
        Distribution::Block(
            parts
                .into_iter()
                .map(|(n, s)| (n, f64::from(s) / f64::from(total)))
                .collect(),
        )
    });
    let list = || proptest::collection::vec(node(), 1..12);
    let orders = prop_oneof![
        Just(Order::Cyclic),
        Just(Order::Skew),
        proptest::sample::select(vec![13u32, 17, 8191]).prop_map(Order::Prime),
        any::<u64>().prop_map(Order::Random),
    ];
    let dealt = (orders, list(), 1u32..200)
        .prop_map(|(order, nodes, block)| Distribution::Dealt(Dealt { order, nodes, block }));
    prop_oneof![
        Just(Distribution::FirstTouch),
        Just(Distribution::Allocator),
        node().prop_map(Distribution::Node),
        list().prop_map(Distribution::Interleave),
        (1u32..5000).prop_map(|repeat| Distribution::ByThread { repeat }),
        shares,
        dealt,
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = prop_oneof![1u64..100, 1u64..(1 << 36)];
    let page =
        (sizes, any::<u64>(), 0u64..(1 << 36), 0u32..300).prop_map(|(pages, index, number, thread)| {
            ObjectPage {
                index: index % pages,
                pages,
                number,
                turn: index % pages,
                thread,
            }
        });
    (distributions(), proptest::collection::vec(0u32..64, 1..200), page).prop_map(
        |(distribution, threads, page)| Case {
            distribution,
            threads,
            page,
        },
    )
}

impl Case {
    fn rust(&self) -> String {
        let threads: Vec<_> = self.threads.iter().copied().map(NodeId).collect();
        self.distribution
            .node(self.page, &threads)
            .map_or(u32::MAX, |n| n.0)
            .to_string()
    }

    /// As the table encodes it.
    fn input(&self) -> String {
        let listed = |nodes: &[NodeId]| nodes.iter().map(|n| (*n, 1.0)).collect();
        let (kind, repeat, parameter, parts) = match &self.distribution {
            Distribution::FirstTouch => (0, 0, 0, vec![]),
            Distribution::Node(n) => (1, 0, 0, listed(&[*n])),
            Distribution::Interleave(nodes) => (1, 0, 0, listed(nodes)),
            Distribution::Block(parts) => (2, 0, 0, cumulative(parts)),
            Distribution::ByThread { repeat } => (3, *repeat, 0, vec![]),
            Distribution::Allocator => (4, 0, 0, vec![]),
            Distribution::Dealt(Dealt { order, nodes, block }) => {
                let (kind, parameter) = match *order {
                    Order::Cyclic => (5, 0),
                    Order::Skew => (6, 0),
                    Order::Prime(prime) => (7, u64::from(prime)),
                    Order::Random(seed) => (8, seed),
                };
                (kind, *block, parameter, listed(nodes))
            }
        };
        let mut text = format!(
            "{kind} {repeat} {parameter} {} {}",
            parts.len(),
            self.threads.len()
        );
        for (node, until) in parts {
            text += &format!(" {node} {until:e}");
        }
        for node in &self.threads {
            text += &format!(" {node}");
        }
        let ObjectPage {
            index,
            pages,
            number,
            turn,
            thread,
        } = self.page;
        text + &format!(" {index} {pages} {number} {turn} {thread}\n")
    }
}

#[test]
fn c_and_rust_agree_on_every_page() {
    let program = Program::new("distribution", PROGRAM, "runtime");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let all = proptest::collection::vec(cases(), 400);
    for _ in 0..10 {
        let cases = all.new_tree(&mut runner).unwrap().current();
        let answers = program.answers(cases.iter().map(Case::input).collect());
        assert_eq!(answers.len(), cases.len());
        for (answer, case) in answers.iter().zip(&cases) {
            assert_eq!(*answer, case.rust(), "{case:?}");
        }
    }
}
