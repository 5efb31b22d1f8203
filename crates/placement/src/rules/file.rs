//! Reads and writes placements as TOML.

use super::{Distribution, Kept, OtherRuns, Placement, Rule, Run, Selector, ThreadBinding};
use nodewise_analysis::Assignment;
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::{BASE_PAGE_SIZE, ObjectKind};
use serde::Deserialize;
use std::fmt::Write as _;

const FORMAT: i64 = 1;
const MOST_NODES: u32 = 4096;
const LONGEST_LINE: usize = 100;

/// A placement that could not be read: one line, what and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlacementError(String);

fn refuse<T>(message: impl Into<String>) -> Result<T, PlacementError> {
    Err(PlacementError(message.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    #[serde(rename = "format")]
    _format: i64,
    policy: String,
    machine: String,
    nodes: u32,
    program: String,
    threads: u32,
    page_size: u64,
    default: String,
    kept: KeptForm,
    binding: BindingForm,
    #[serde(default)]
    rule: Vec<RuleForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptForm {
    mapping_local: f64,
    rules_local: f64,
    transferable_local: f64,
    other_runs: Option<OtherRunsForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherRunsForm {
    assignment: String,
    by_number: f64,
    by_data: f64,
    first_touch: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BindingForm {
    name: String,
    cpus: Vec<u32>,
    nodes: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    kind: String,
    site: Option<String>,
    name: Option<String>,
    thread: Option<u32>,
    sequence: Option<u32>,
    distribution: String,
    pages: u64,
    #[serde(default = "unknown_weight")]
    weight: f64,
    #[serde(default)]
    runs: String,
}

fn unknown_weight() -> f64 {
    1.0
}

impl Placement {
    /// Reads the text of a map file.
    ///
    /// # Errors
    /// One line naming what is wrong: not TOML, a newer format, a node that the target lacks, runs
    /// that overlap or leave their object.
    pub fn read(text: &str) -> Result<Self, PlacementError> {
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| PlacementError(describe(text, &e)))?;
        match table.get("format").and_then(toml::Value::as_integer) {
            Some(FORMAT) => {}
            Some(other) => {
                return refuse(format!(
                    "map format {other} is not known here (known: {FORMAT}); update nodewise"
                ));
            }
            None => return refuse("not a map: `format = 1` is missing"),
        }
        let form: FileForm = toml::from_str(text).map_err(|e| PlacementError(describe(text, &e)))?;
        form.check()
    }

    /// The text of a map file; [`Placement::read`] gives an equal placement back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.to_toml_with(&[])
    }

    /// Like [`Placement::to_toml`], with a comment above each rule.
    #[must_use]
    pub fn to_toml_with(&self, comments: &[String]) -> String {
        let mut out = String::new();
        self.write_head(&mut out)
            .and_then(|()| self.write_rules(&mut out, comments))
            .expect("strings take any text");
        out
    }

    fn write_head(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "# A nodewise map: rules say where objects go. The first rule that matches an object wins;"
        )?;
        writeln!(
            out,
            "# objects without a rule follow `default`. Apply with: nodewise run --policy map:FILE -- CMD"
        )?;
        writeln!(out, "format = {FORMAT}")?;
        writeln!(out, "policy = {}", quoted(&self.policy))?;
        writeln!(out, "machine = {}", quoted(&self.machine))?;
        writeln!(out, "nodes = {}", self.nodes)?;
        writeln!(out, "program = {}", quoted(&self.program))?;
        writeln!(out, "threads = {}", self.threads)?;
        writeln!(
            out,
            "page_size = {} # bytes; decisions are no finer",
            self.page_size
        )?;
        writeln!(out, "default = {}", quoted(&self.default.to_string()))?;
        writeln!(
            out,
            "\n# Share of accesses that are local: of the full page mapping, of these rules, and of these"
        )?;
        writeln!(
            out,
            "# rules without page runs, which is what carries over to another input size."
        )?;
        writeln!(out, "[kept]\nmapping_local = {:?}", self.kept.mapping_local)?;
        writeln!(out, "rules_local = {:?}", self.kept.rules_local)?;
        writeln!(out, "transferable_local = {:?}", self.kept.transferable_local)?;
        self.write_other_runs(out)?;
        writeln!(
            out,
            "\n# Where thread i (its OpenMP number, else its ordinal) runs."
        )?;
        writeln!(out, "[binding]\nname = {}", quoted(&self.binding.name))?;
        writeln!(
            out,
            "cpus = {:?}",
            self.binding.cpus.iter().map(|c| c.0).collect::<Vec<_>>()
        )?;
        writeln!(
            out,
            "nodes = {:?}",
            self.binding.nodes.iter().map(|n| n.0).collect::<Vec<_>>()
        )
    }

    fn write_other_runs(&self, out: &mut String) -> std::fmt::Result {
        let Some(other) = self.kept.other_runs else {
            return Ok(());
        };
        let how = match other.assignment {
            Assignment::Fixed => "by number",
            Assignment::Arrival => "in order of arrival",
            Assignment::Dynamic => "as work comes",
        };
        writeln!(
            out,
            "\n# In other runs, whose threads take their parts {how}: with threads bound by number, each on the\n\
             # node of its part, and under first touch."
        )?;
        writeln!(
            out,
            "[kept.other_runs]\nassignment = \"{}\"\nby_number = {:?}\nby_data = {:?}\nfirst_touch = {:?}",
            other.assignment.name(),
            other.by_number,
            other.by_data,
            other.first_touch
        )
    }

    fn write_rules(&self, out: &mut String, comments: &[String]) -> std::fmt::Result {
        for (i, rule) in self.rules.iter().enumerate() {
            writeln!(out)?;
            for line in comments.get(i).into_iter().flat_map(|c| c.lines()) {
                writeln!(out, "# {}", line.replace(|c: char| c.is_control(), " "))?;
            }
            write_rule(out, rule)?;
        }
        Ok(())
    }
}

fn write_rule(out: &mut String, rule: &Rule) -> std::fmt::Result {
    let Selector {
        kind,
        site,
        name,
        thread,
        sequence,
    } = &rule.object;
    writeln!(out, "[[rule]]\nkind = {}", quoted(kind.name()))?;
    for (key, value) in [("site", site), ("name", name)] {
        if let Some(value) = value {
            writeln!(out, "{key} = {}", quoted(value))?;
        }
    }
    for (key, value) in [("thread", thread), ("sequence", sequence)] {
        if let Some(value) = value {
            writeln!(out, "{key} = {value}")?;
        }
    }
    writeln!(out, "distribution = {}", quoted(&rule.distribution.to_string()))?;
    writeln!(out, "pages = {}", rule.pages)?;
    writeln!(
        out,
        "weight = {:?} # accesses to a page over the mean of all pages",
        rule.weight
    )?;
    if !rule.runs.is_empty() {
        writeln!(
            out,
            "runs = \"\"\"\n{}\"\"\" # page or first-last:node",
            written_runs(&rule.runs)
        )?;
    }
    Ok(())
}

fn written_runs(runs: &[Run]) -> String {
    let mut text = String::new();
    let mut line = 0;
    for run in runs {
        let start = text.len();
        match run.len {
            1 => write!(text, "{}:{} ", run.first, run.node),
            len => write!(text, "{}-{}:{} ", run.first, run.first + len - 1, run.node),
        }
        .expect("strings take any text");
        line += text.len() - start;
        if line >= LONGEST_LINE {
            text.pop();
            text.push('\n');
            line = 0;
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.replace('\n', " ")).to_string()
}

/// The parser's message and line, on one line.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let line = text.as_bytes()[..span.start.min(text.len())]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
                + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

impl FileForm {
    fn check(self) -> Result<Placement, PlacementError> {
        if self.nodes == 0 || self.nodes > MOST_NODES {
            return refuse(format!("nodes = {}: must be 1 to {MOST_NODES}", self.nodes));
        }
        if !self.page_size.is_power_of_two() || self.page_size < BASE_PAGE_SIZE {
            return refuse(format!(
                "page_size = {}: must be a power of two from {BASE_PAGE_SIZE}",
                self.page_size
            ));
        }
        let kept = Kept {
            mapping_local: fraction(self.kept.mapping_local)?,
            rules_local: fraction(self.kept.rules_local)?,
            transferable_local: fraction(self.kept.transferable_local)?,
            other_runs: self.kept.other_runs.map(OtherRunsForm::check).transpose()?,
        };
        let nodes = self.nodes;
        let rules = self.rule.into_iter().enumerate();
        let rules = rules
            .map(|(i, r)| {
                r.check(nodes)
                    .map_err(|e| PlacementError(format!("rule {}: {e}", i + 1)))
            })
            .collect::<Result<_, _>>()?;
        Ok(Placement {
            policy: self.policy,
            machine: self.machine,
            nodes,
            program: self.program,
            threads: self.threads,
            page_size: self.page_size,
            binding: self.binding.check(nodes)?,
            default: distribution(&self.default, nodes)?,
            rules,
            kept,
        })
    }
}

impl OtherRunsForm {
    fn check(self) -> Result<OtherRuns, PlacementError> {
        let known = Assignment::from_name(&self.assignment);
        Ok(OtherRuns {
            assignment: known.ok_or_else(|| {
                PlacementError(format!(
                    "kept.other_runs: unknown assignment `{}`; known: fixed, arrival, dynamic",
                    self.assignment
                ))
            })?,
            by_number: fraction(self.by_number)?,
            by_data: fraction(self.by_data)?,
            first_touch: fraction(self.first_touch)?,
        })
    }
}

impl BindingForm {
    fn check(self, nodes: u32) -> Result<ThreadBinding, PlacementError> {
        if self.cpus.len() != self.nodes.len() {
            return refuse(format!(
                "binding: {} cpus but {} nodes",
                self.cpus.len(),
                self.nodes.len()
            ));
        }
        let node = |n| known_node(NodeId(n), nodes);
        Ok(ThreadBinding {
            name: self.name,
            cpus: self.cpus.into_iter().map(CpuId).collect(),
            nodes: self.nodes.into_iter().map(node).collect::<Result<_, _>>()?,
        })
    }
}

impl RuleForm {
    fn check(self, nodes: u32) -> Result<Rule, PlacementError> {
        let Some(kind) = ObjectKind::from_name(&self.kind) else {
            let known = ObjectKind::ALL.map(ObjectKind::name).join(", ");
            return refuse(format!("unknown kind `{}`; known: {known}", self.kind));
        };
        Ok(Rule {
            object: Selector {
                kind,
                site: self.site,
                name: self.name,
                thread: self.thread,
                sequence: self.sequence,
            },
            distribution: distribution(&self.distribution, nodes)?,
            runs: read_runs(&self.runs, self.pages, nodes)?,
            pages: self.pages,
            weight: Some(self.weight)
                .filter(|w| w.is_finite() && *w >= 0.0)
                .ok_or_else(|| PlacementError(format!("weight = {}: not a number from 0", self.weight)))?,
        })
    }
}

fn known_node(node: NodeId, nodes: u32) -> Result<NodeId, PlacementError> {
    if node.0 < nodes {
        Ok(node)
    } else {
        refuse(format!(
            "node {node} does not exist: the map is for {nodes} nodes"
        ))
    }
}

fn fraction(value: f64) -> Result<f64, PlacementError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        refuse(format!("kept: {value} is not a fraction"))
    }
}

fn distribution(text: &str, nodes: u32) -> Result<Distribution, PlacementError> {
    let read: Distribution = text
        .parse()
        .map_err(|e: super::DistributionError| PlacementError(e.to_string()))?;
    match &read {
        Distribution::Node(n) => known_node(*n, nodes).map(drop)?,
        Distribution::Interleave(list) => list.iter().try_for_each(|n| known_node(*n, nodes).map(drop))?,
        Distribution::Dealt(dealt) => dealt
            .nodes
            .iter()
            .try_for_each(|n| known_node(*n, nodes).map(drop))?,
        Distribution::Block(parts) => parts.iter().try_for_each(|p| known_node(p.0, nodes).map(drop))?,
        Distribution::FirstTouch | Distribution::ByThread { .. } | Distribution::Allocator => {}
    }
    Ok(read)
}

fn read_runs(text: &str, pages: u64, nodes: u32) -> Result<Vec<Run>, PlacementError> {
    let mut runs = Vec::new();
    let mut free = 0;
    for word in text.split_whitespace() {
        let Some(run) = read_run(word) else {
            return refuse(format!("run `{word}` is not `page:node` or `first-last:node`"));
        };
        known_node(run.node, nodes)?;
        if run.first < free {
            return refuse(format!("run `{word}` overlaps or precedes the one before it"));
        }
        free = run.first + run.len;
        if free > pages {
            return refuse(format!("run `{word}` leaves its object of {pages} pages"));
        }
        runs.push(run);
    }
    Ok(runs)
}

fn read_run(word: &str) -> Option<Run> {
    let (span, node) = word.split_once(':')?;
    let (first, last) = span.split_once('-').unwrap_or((span, span));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let len = last.checked_sub(first)?.checked_add(1)?;
    first.checked_add(len)?;
    Some(Run {
        first,
        len,
        node: NodeId(node.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
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
                    Run {
                        first: 0,
                        len: 1,
                        node: NodeId(3),
                    },
                    Run {
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
                    Run {
                        first,
                        len,
                        node: NodeId(node),
                    }
                });
                let runs = runs.collect();
                let object = Selector {
                    kind: ObjectKind::ALL[kind],
                    site,
                    name,
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
}
