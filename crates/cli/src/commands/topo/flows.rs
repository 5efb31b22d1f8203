//! `topo --flows`: the bandwidth that each of several flows gets when all run together.

use anyhow::Context;
use nodewise_machine::{Channels, Flow, LinkId, Machine};
use nodewise_report::{gigabytes, table, whole_percent};
use serde::Serialize;

/// Max-min fair rates of flows on a machine; the keys are documented in `docs/machines.md`.
#[derive(Serialize)]
pub struct Together {
    machine: String,
    flows: Vec<Moving>,
    #[serde(rename = "total_MBps")]
    total: f64,
    links: Vec<Loaded>,
    /// Load of each link and then of the backplane, MB/s, for the picture.
    #[serde(skip)]
    pub load: Vec<f64>,
}

#[derive(Serialize)]
struct Moving {
    memory: u32,
    reader: u32,
    via: Vec<u32>,
    #[serde(rename = "alone_MBps")]
    alone: f64,
    #[serde(rename = "together_MBps")]
    together: f64,
    held_back_by: String,
}

/// A link with traffic on it.
#[derive(Serialize)]
struct Loaded {
    from: Vec<u32>,
    to: Vec<u32>,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: f64,
    #[serde(rename = "load_MBps")]
    load: f64,
}

impl Together {
    pub fn of(machine: &Machine, list: &str) -> anyhow::Result<Self> {
        let flows = Flow::parse_list(list, machine.node_count()).context("--flows")?;
        let channels = Channels::of(machine);
        let rates = channels.max_min(&flows);
        let loads = channels.loads(&flows, &rates);
        let backplane = machine.backplane.and_then(|_| loads.last());
        let moving = |(flow, rate): (&Flow, &f64)| Moving {
            memory: flow.memory.0,
            reader: flow.reader.0,
            via: machine
                .via(flow.reader, flow.memory)
                .iter()
                .map(|n| n.0)
                .collect(),
            alone: channels.max_min(&[*flow])[0],
            together: *rate,
            held_back_by: channel(machine, channels.holds_back(*flow, &loads)),
        };
        Ok(Self {
            machine: machine.name.clone(),
            flows: flows.iter().zip(&rates).map(moving).collect(),
            total: rates.iter().sum(),
            links: (0..machine.links.len())
                .filter(|l| loads[*l] > 0.0)
                .map(|l| loaded(machine, l, loads[l]))
                .collect(),
            load: loads[..machine.links.len()]
                .iter()
                .chain(backplane)
                .copied()
                .collect(),
        })
    }

    pub fn text(&self) -> String {
        let header = ["data", "alone", "together", "held back by"].map(str::to_owned);
        let flows = self.flows.iter().map(|flow| {
            let stops = [&[flow.memory][..], &flow.via, &[flow.reader]].concat();
            let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
            [
                stops.join(">"),
                gigabytes(flow.alone),
                gigabytes(flow.together),
                flow.held_back_by.clone(),
            ]
        });
        let all = [
            "in all".to_owned(),
            String::new(),
            gigabytes(self.total),
            String::new(),
        ];
        let rows = std::iter::once(header).chain(flows).chain(std::iter::once(all));
        let mut out = table("lrrl", rows);
        out.push_str("\nlinks on the way\n");
        let links = self.links.iter().map(|link| {
            [
                format!("{}>{}", group(&link.from), group(&link.to)),
                format!("{} of {}", gigabytes(link.load), gigabytes(link.bandwidth)),
                whole_percent(link.load / link.bandwidth),
            ]
        });
        out.push_str(&table("lrr", links));
        out
    }
}

fn loaded(machine: &Machine, link: usize, load: f64) -> Loaded {
    let (from, to) = machine.link_ends(LinkId(link as u32));
    let numbers = |nodes: Vec<nodewise_machine::NodeId>| nodes.iter().map(|n| n.0).collect();
    Loaded {
        from: numbers(from),
        to: numbers(to),
        bandwidth: machine.links[link].bandwidth,
        load,
    }
}

/// Name of a channel by its number: links first, then routes with less capacity than their links, the backplane last.
fn channel(machine: &Machine, channel: Option<u32>) -> String {
    let Some(channel) = channel else {
        return "nothing".to_owned();
    };
    if (channel as usize) < machine.links.len() {
        let (from, to) = machine.link_ends(LinkId(channel));
        let numbers = |nodes: &[nodewise_machine::NodeId]| nodes.iter().map(|n| n.0).collect::<Vec<_>>();
        return format!("link {}>{}", group(&numbers(&from)), group(&numbers(&to)));
    }
    let backplane =
        machine.backplane.is_some() && channel as usize + 1 == Channels::of(machine).capacity.len();
    if backplane {
        "the backplane".to_owned()
    } else {
        "what its route lets through".to_owned()
    }
}

fn group(nodes: &[u32]) -> String {
    match nodes {
        [one] => one.to_string(),
        _ => format!(
            "{{{}}}",
            nodes
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",")
        ),
    }
}
