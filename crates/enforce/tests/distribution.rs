//! `runtime/distribution.h` and its Rust mirror give every page the same node.

use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, ObjectPage, cumulative};
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = r#"
#include "distribution.h"
#include <stdio.h>
#include <inttypes.h>
int main(void) {
    nw_distribution rule = {0};
    uint32_t threads, nodes[256];
    nw_part parts[256];
    nw_page page = {0};
    while (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &rule.kind, &rule.repeat, &rule.count, &threads) == 4) {
        for (uint32_t i = 0; i < rule.count; i++) scanf("%" SCNu32 " %la", &parts[i].node, &parts[i].until);
        for (uint32_t i = 0; i < threads; i++) scanf("%" SCNu32, &nodes[i]);
        scanf("%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32, &page.index, &page.pages, &page.number, &page.thread);
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
    prop_oneof![
        Just(Distribution::FirstTouch),
        Just(Distribution::Allocator),
        node().prop_map(Distribution::Node),
        proptest::collection::vec(node(), 1..12).prop_map(Distribution::Interleave),
        (1u32..5000).prop_map(|repeat| Distribution::ByThread { repeat }),
        shares,
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
        let (kind, repeat, parts) = match &self.distribution {
            Distribution::FirstTouch => (0, 0, vec![]),
            Distribution::Node(n) => (1, 0, vec![(*n, 1.0)]),
            Distribution::Interleave(nodes) => (1, 0, nodes.iter().map(|n| (*n, 1.0)).collect()),
            Distribution::Block(parts) => (2, 0, cumulative(parts)),
            Distribution::ByThread { repeat } => (3, *repeat, vec![]),
            Distribution::Allocator => (4, 0, vec![]),
        };
        let mut text = format!("{kind} {repeat} {} {}", parts.len(), self.threads.len());
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
            thread,
        } = self.page;
        text + &format!(" {index} {pages} {number} {thread}\n")
    }
}

fn compiled(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("distribution.c"), folder.join("distribution"));
    std::fs::write(&source, PROGRAM).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wno-unused-result", "-o"])
        .args([&program, &source])
        .arg("-I")
        .arg(include)
        .status()
        .unwrap();
    assert!(compiled.success());
    program
}

#[test]
fn c_and_rust_agree_on_every_page() {
    let folder = std::env::temp_dir().join(format!("nodewise-distribution-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = compiled(&folder);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let all = proptest::collection::vec(cases(), 400);
    for _ in 0..10 {
        let cases = proptest::strategy::ValueTree::current(&all.new_tree(&mut runner).unwrap());
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input: String = cases.iter().map(Case::input).collect();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let answers = String::from_utf8(output.stdout).unwrap();
        assert_eq!(answers.lines().count(), cases.len());
        for (answer, case) in answers.lines().zip(&cases) {
            assert_eq!(answer, case.rust(), "{case:?}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
