use super::*;
use crate::rules::{Dealt, Order};
use proptest::prelude::*;

fn example() -> Placement {
    Placement {
        policy: "mixed:0.9".into(),
        machine: "opteron-6386".into(),
        nodes: 8,
        program: "sor".into(),
        threads: 4,
        page_size: 4096,
        binding: ThreadBinding {
            name: "compact".into(),
            cpus: [0, 1, 8, 9].map(CpuId).to_vec(),
            nodes: [0, 0, 1, 1].map(NodeId).to_vec(),
        },
        default: Distribution::FirstTouch,
        rules: vec![Rule {
            object: Selector {
                kind: ObjectKind::Heap,
                site: Some("make \"grid\" sor.c:4 < main sor.c:9".into()),
                name: Some("grid".into()),
                thread: None,
                sequence: Some(2),
            },
            distribution: Distribution::ByThread { repeat: 1 },
            runs: vec![
                NodeRun {
                    first: 0,
                    len: 1,
                    node: NodeId(3),
                },
                NodeRun {
                    first: 5,
                    len: 20,
                    node: NodeId(7),
                },
            ],
            pages: 100,
            weight: 2.5,
        }],
        kept: Kept {
            mapping_local: 0.97,
            rules_local: 0.96,
            transferable_local: 1.0 / 3.0,
            other_runs: Some(OtherRuns {
                assignment: Assignment::Arrival,
                assumed: true,
                by_number: 0.01,
                by_data: 0.96,
                first_touch: 0.5,
            }),
        },
    }
}

fn error(edit: (&str, &str)) -> String {
    let text = example().to_toml();
    assert!(text.contains(edit.0), "{text}");
    Placement::read(&text.replacen(edit.0, edit.1, 1))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_map_is_read_back_as_written() {
    let written = example();
    assert_eq!(Placement::read(&written.to_toml()).unwrap(), written);
    let commented = written.to_toml_with(&["two\nlines".into()]);
    assert!(commented.contains("# two\n# lines\n[[rule]]"), "{commented}");
    assert_eq!(Placement::read(&commented).unwrap(), written);
}

#[test]
fn each_defect_is_named_in_one_line() {
    for (edit, expected) in [
        (
            ("format = 1", "format = 2"),
            "map format 2 is not known here (known: 1); update nodewise",
        ),
        (("format = 1", ""), "not a map: `format = 1` is missing"),
        (("nodes = 8", "nodes = 0"), "nodes = 0: must be 1 to 4096"),
        (
            ("nodes = 8", "nodes = 7"),
            "rule 1: node 7 does not exist: the map is for 7 nodes",
        ),
        (
            ("4096", "4095"),
            "page_size = 4095: must be a power of two from 4096",
        ),
        (("0.97", "nan"), "kept: NaN is not a fraction"),
        (
            ("\"arrival\"", "\"luck\""),
            "kept.other_runs: unknown assignment `luck`; known: fixed, arrival, dynamic",
        ),
        (("0, 0, 1, 1", "0, 0, 1"), "binding: 4 cpus but 3 nodes"),
        (
            ("\"heap\"", "\"heaps\""),
            "rule 1: unknown kind `heaps`; known: unknown, heap, arena, static, tls, stack, mapping, file, image",
        ),
        (
            ("5-24:7", "0-24:7"),
            "rule 1: run `0-24:7` overlaps or precedes the one before it",
        ),
        (
            ("5-24:7", "5-100:7"),
            "rule 1: run `5-100:7` leaves its object of 100 pages",
        ),
        (
            ("5-24:7", "5-4:7"),
            "rule 1: run `5-4:7` is not `page:node` or `first-last:node`",
        ),
    ] {
        assert_eq!(error(edit), expected);
    }
    assert!(error(("threads = 4", "threads = [")).starts_with("line "));
    assert!(!error(("by thread", "by magic")).contains('\n'));
}

fn distributions() -> impl Strategy<Value = Distribution> {
    let node = || (0u32..8).prop_map(NodeId);
    let orders = prop_oneof![
        Just(Order::Cyclic),
        Just(Order::Skew),
        Just(Order::Prime(13)),
        any::<u64>().prop_map(Order::Random),
    ];
    prop_oneof![
        Just(Distribution::FirstTouch),
        Just(Distribution::Allocator),
        node().prop_map(Distribution::Node),
        proptest::collection::vec(node(), 1..12).prop_map(Distribution::Interleave),
        (1u32..1000).prop_map(|repeat| Distribution::ByThread { repeat }),
        (orders, proptest::collection::vec(node(), 1..12), 1u32..100)
            .prop_map(|(order, nodes, block)| Distribution::Dealt(Dealt { order, nodes, block })),
    ]
}

fn rules() -> impl Strategy<Value = Rule> {
    let gaps = proptest::collection::vec((0u64..9, 1u64..9, 0u32..8), 0..40);
    let text = || proptest::option::of(any::<String>().prop_map(|t| t.replace('\n', " ")));
    let numbers = (any::<Option<u32>>(), any::<Option<u32>>());
    (0..9usize, text(), text(), numbers, distributions(), gaps).prop_map(
        |(kind, site, name, (thread, sequence), distribution, gaps)| {
            let mut next = 0;
            let runs = gaps.into_iter().map(|(gap, len, node)| {
                let first = next + gap;
                next = first + len;
                NodeRun {
                    first,
                    len,
                    node: NodeId(node),
                }
            });
            let runs = runs.collect();
            let kind = ObjectKind::ALL[kind];
            let object = Selector {
                kind,
                site,
                // What a rule calls a file is a pattern.
                name: match kind {
                    ObjectKind::File => Some(Named::escaped(&name.unwrap_or_default())),
                    _ => name,
                },
                thread,
                sequence,
            };
            Rule {
                object,
                distribution,
                runs,
                pages: next,
                weight: 1.0,
            }
        },
    )
}

#[test]
fn a_rule_for_a_file_names_it() {
    let text = |name: &str| {
        let rule =
            format!("\n[[rule]]\nkind = \"file\"\n{name}distribution = \"block by thread\"\npages = 4\n");
        let read = Placement::read(&(example().to_toml() + &rule));
        read.map_or_else(|e| e.to_string(), |_| String::new())
    };
    assert_eq!(text("name = \"/models/*.gguf\"\n"), "");
    assert!(
        text("").contains("a rule for a file needs its name"),
        "{}",
        text("")
    );
    assert!(text("name = \"/models/[a\"\n").contains("/models/[a"));
}

proptest! {
    #[test]
    fn any_rules_survive_the_file(rules in proptest::collection::vec(rules(), 0..5)) {
        let written = Placement { rules, ..example() };
        prop_assert_eq!(Placement::read(&written.to_toml()).unwrap(), written);
    }

    #[test]
    fn hostile_text_is_refused_in_one_line(text in any::<String>(), at in 0usize..900, byte in any::<char>()) {
        let mut edited: Vec<char> = example().to_toml().chars().collect();
        let at = at.min(edited.len() - 1);
        edited[at] = byte;
        for text in [text, edited.into_iter().collect()] {
            if let Err(error) = Placement::read(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
