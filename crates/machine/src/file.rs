//! The machine file: TOML, described in `docs/machines.md`.

use crate::hops::way_bandwidth;
use crate::listed::RouteEntry;
use crate::routing::SharedLink;
use crate::text::{format_bytes, format_list};
use crate::{HopRule, Link, LinkId, Machine, MachineError, MemoryCache, MemoryKind, Node, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file as written; parts that it leaves out are derived.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineFile {
    pub name: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(default = "default_page_size")]
    pub page_size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backplane: Option<f64>,
    pub latency_ns: Vec<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Vec<Vec<f64>>>,
    pub nodes: Vec<NodeEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hop_rules: Vec<HopRule>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assumed: BTreeMap<String, String>,
}

fn default_page_size() -> String {
    "4K".to_owned()
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeEntry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    pub memory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MemoryKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheEntry>,
}

/// A memory-side cache of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheEntry {
    pub memory: String,
    pub bandwidth: f64,
    pub latency_ns: HitLatency,
}

/// Of a hit: by a CPU of the node, others being as much further as from its memory; or by the reading CPU's node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum HitLatency {
    Own(f64),
    ByReader(Vec<f64>),
}

impl CacheEntry {
    fn of(cache: &MemoryCache) -> Self {
        Self {
            memory: format_bytes(cache.memory),
            bandwidth: cache.bandwidth,
            latency_ns: HitLatency::ByReader(cache.latency_ns.clone()),
        }
    }
}

/// A link entry: `from`/`to` is one direction, `between` both directions, `among` both directions of every pair.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[End; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    pub bandwidth: f64,
}

/// An end of a link: one node, or several nodes that share it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum End {
    One(u32),
    Shared(Vec<u32>),
}

impl End {
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        match self {
            Self::One(n) => vec![NodeId(*n)],
            Self::Shared(all) => all.iter().copied().map(NodeId).collect(),
        }
    }
}

impl Machine {
    /// Parses the text of a machine file. `origin` names the file in errors.
    ///
    /// # Errors
    /// If the text is not a machine file, or its figures contradict each other.
    pub fn parse(text: &str, origin: &str) -> Result<Self, MachineError> {
        MachineFile::parse(text)
            .and_then(MachineFile::into_machine)
            .map_err(|e| e.at(origin))
    }

    /// The machine as a file that [`Machine::parse`] reads back: all links; all routes that `parse` would not derive
    /// from them; and the bandwidth matrix if links and hop rules do not give its values.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&MachineFile::of(self)).expect("a machine file has nothing TOML lacks")
    }
}

impl Machine {
    /// Whether every route's bandwidth follows from links, hop rules, backplane and memories.
    fn follows_its_links(&self) -> bool {
        self.routes.iter().all(|row| {
            row.iter().zip(&self.nodes).all(|(route, memory)| {
                let way: Vec<&Link> = route.links.iter().map(|l| &self.links[l.0 as usize]).collect();
                let shared = self
                    .backplane
                    .filter(|_| !way.is_empty())
                    .unwrap_or(f64::INFINITY);
                route.bandwidth
                    == way_bandwidth(&way, &self.hop_rules)
                        .min(shared)
                        .min(memory.widest())
            })
        })
    }
}

impl MachineFile {
    pub(crate) fn parse(text: &str) -> Result<Self, MachineError> {
        toml::from_str(text).map_err(|e| {
            let line = 1 + e.span().map_or(0, |s| text[..s.start].matches('\n').count());
            MachineError::invalid(format!("line {line}: {}", e.message().replace('\n', ", ")))
        })
    }

    fn of(machine: &Machine) -> Self {
        let texts = |assumed| {
            let of = machine.sources.iter().filter(move |s| s.assumed == assumed);
            of.map(|s| (s.field.clone(), s.text.clone())).collect()
        };
        let row = |routes: &Vec<crate::Route>| routes.iter().map(|r| r.bandwidth).collect();
        let links = 0..machine.links.len() as u32;
        Self {
            name: machine.name.clone(),
            title: machine.title.clone(),
            aliases: Vec::new(),
            page_size: format_bytes(machine.page_size),
            backplane: machine.backplane,
            latency_ns: machine.latency_ns.clone(),
            bandwidth: (!machine.follows_its_links()).then(|| machine.routes.iter().map(row).collect()),
            nodes: machine.nodes.iter().map(NodeEntry::of).collect(),
            links: links.map(|l| LinkEntry::of(machine, LinkId(l))).collect(),
            routes: RouteEntry::all(machine),
            hop_rules: machine.hop_rules.clone(),
            sources: texts(false),
            assumed: texts(true),
        }
    }
}

impl NodeEntry {
    fn of(node: &Node) -> Self {
        let cpus: Vec<u32> = node.cpus.iter().map(|c| c.0).collect();
        Self {
            cpus: format_list(&cpus),
            memory: format_bytes(node.memory),
            bandwidth: Some(node.bandwidth),
            os_index: Some(node.os_index),
            kind: node.kind,
            socket: node.socket,
            cache: node.cache.as_ref().map(CacheEntry::of),
        }
    }
}

impl LinkEntry {
    fn of(machine: &Machine, id: LinkId) -> Self {
        let SharedLink {
            from,
            to,
            bandwidth,
            class,
        } = SharedLink::of(machine, id);
        let end = |nodes: Vec<NodeId>| match nodes[..] {
            [one] => End::One(one.0),
            _ => End::Shared(nodes.iter().map(|n| n.0).collect()),
        };
        Self {
            from: Some(end(from)),
            to: Some(end(to)),
            class,
            bandwidth,
            ..Self::default()
        }
    }
}
