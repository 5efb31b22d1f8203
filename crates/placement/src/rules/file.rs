//! Reads and writes placements as TOML.

use super::{Distribution, Kept, Named, NodeRun, OtherRuns, Placement, Rule, Selector, ThreadBinding};
use nodewise_analysis::Assignment;
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::{BASE_PAGE_SIZE, ObjectKind};
use serde::Deserialize;
use std::fmt::Write as _;

const FORMAT_VERSION: i64 = 1;
const MAX_NODES: u32 = 4096;
const MAX_LINE_LENGTH: usize = 100;

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
    #[serde(default)]
    assumed: bool,
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
            Some(FORMAT_VERSION) => {}
            Some(other) => {
                return refuse(format!(
                    "map format {other} is not known here (known: {FORMAT_VERSION}); update nodewise"
                ));
            }
            None => return refuse("not a map: `format = 1` is missing"),
        }
        let form: FileForm = toml::from_str(text).map_err(|e| PlacementError(describe(text, &e)))?;
        form.check()
    }

    /// The text of a map file; [`Placement::read`] parses it to an equal placement.
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
        writeln!(out, "format = {FORMAT_VERSION}")?;
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
        let seen = if other.assumed {
            ", if by the numbers that they take from a counter"
        } else {
            ""
        };
        writeln!(
            out,
            "\n# In other runs, whose threads take their parts {how}{seen}: with threads bound by number, each on the\n\
             # node of its part, and under first touch."
        )?;
        writeln!(
            out,
            "[kept.other_runs]\nassignment = \"{}\"\nby_number = {:?}\nby_data = {:?}\nfirst_touch = {:?}",
            other.assignment.name(),
            other.by_number,
            other.by_data,
            other.first_touch
        )?;
        if other.assumed {
            writeln!(out, "assumed = true")?;
        }
        Ok(())
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

fn written_runs(runs: &[NodeRun]) -> String {
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
        if line >= MAX_LINE_LENGTH {
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
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return refuse(format!("nodes = {}: must be 1 to {MAX_NODES}", self.nodes));
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
            assumed: self.assumed,
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
        let named = || self.name.as_deref().and_then(Named::new);
        if kind == ObjectKind::File && named().is_none() {
            return refuse(format!(
                "a rule for a file needs its name, a path or pattern: {}",
                self.name.as_deref().unwrap_or("there is none")
            ));
        }
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

impl Distribution {
    /// Reads a distribution over `nodes` nodes, in the notation of maps.
    ///
    /// # Errors
    /// It is none, or names a node beyond these.
    pub fn among(text: &str, nodes: u32) -> Result<Self, PlacementError> {
        distribution(text, nodes)
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

fn read_runs(text: &str, pages: u64, nodes: u32) -> Result<Vec<NodeRun>, PlacementError> {
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

fn read_run(word: &str) -> Option<NodeRun> {
    let (span, node) = word.split_once(':')?;
    let (first, last) = span.split_once('-').unwrap_or((span, span));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let len = last.checked_sub(first)?.checked_add(1)?;
    first.checked_add(len)?;
    Some(NodeRun {
        first,
        len,
        node: NodeId(node.parse().ok()?),
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
