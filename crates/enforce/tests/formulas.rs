//! `lib/src/formulas.h` and its Rust mirror agree, formula by formula.

mod compiled;

use compiled::Program;
use nodewise_placement::formulas;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const PROGRAM: &str = r#"
#include "formulas.h"
#include <inttypes.h>
#include <stdio.h>
int main(void) {
    uint64_t a, b, n;
    uint32_t p, q, c[4];
    while (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32, &a, &b, &n, &p, &q) == 5) {
        for (int i = 0; i < 4; i++) scanf("%" SCNu32, &c[i]);
        printf("%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
               nw_formula_cyclic(a, q), nw_formula_skew(a, q), nw_formula_prime(a, p, q), nw_formula_mix(a),
               nw_formula_random(a, b, q), nw_formula_static(a % n, n, q), nw_formula_latin(c, 1 + b % 4, q));
    }
}
"#;

/// Arguments of all formulas at once.
#[derive(Debug)]
struct Case {
    block: u64,
    seed: u64,
    units: u64,
    prime: u32,
    nodes: u32,
    coordinates: [u32; 4],
}

fn cases() -> impl Strategy<Value = Case> {
    let number = || prop_oneof![0u64..100, any::<u64>()];
    let nodes = prop_oneof![1u32..20, any::<u32>().prop_map(|n| n.max(1))];
    let units = prop_oneof![1u64..100, any::<u64>().prop_map(|n| n.max(1))];
    let beyond = prop_oneof![0u32..20, any::<u32>()];
    (number(), any::<u64>(), units, nodes, beyond, any::<[u32; 4]>()).prop_map(
        |(block, seed, units, nodes, beyond, coordinates)| Case {
            block,
            seed,
            units,
            prime: nodes.saturating_add(beyond),
            nodes,
            coordinates,
        },
    )
}

impl Case {
    fn input(&self) -> String {
        let Self {
            block,
            seed,
            units,
            prime,
            nodes,
            coordinates: [x, y, z, w],
        } = self;
        format!("{block} {seed} {units} {prime} {nodes} {x} {y} {z} {w}\n")
    }

    fn rust(&self) -> String {
        let Self {
            block,
            seed,
            units,
            prime,
            nodes,
            coordinates,
        } = *self;
        let dimensions = 1 + (seed % 4) as usize;
        format!(
            "{} {} {} {} {} {} {}",
            formulas::cyclic(block, nodes),
            formulas::skew(block, nodes),
            formulas::prime(block, prime, nodes),
            formulas::mix(block),
            formulas::random(block, seed, nodes),
            formulas::static_part(block % units, units, nodes),
            formulas::latin(&coordinates[..dimensions], nodes),
        )
    }
}

#[test]
fn c_and_rust_agree_on_every_formula() {
    let program = Program::new("formulas", PROGRAM, "lib/src");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let all = proptest::collection::vec(cases(), 4000);
    let cases = all.new_tree(&mut runner).unwrap().current();
    let answers = program.answers(cases.iter().map(Case::input).collect());
    assert_eq!(answers.len(), cases.len());
    for (answer, case) in answers.iter().zip(&cases) {
        assert_eq!(*answer, case.rust(), "{case:?}");
    }
}
