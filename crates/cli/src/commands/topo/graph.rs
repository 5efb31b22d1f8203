//! Describes what connects the nodes: links by bandwidth, routes by length, bandwidth lost on the way, and pairs whose
//! requests take another route than their data.

use crate::output::Screen;
use nodewise_machine::{Link, LinkId, Machine, NodeId, format_list};
use nodewise_report::{and_more, gigabytes};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Largest number of words on a line; longer lists are cut.
const MAX_WORDS_PER_LINE: usize = 120;

pub fn write(machine: &Machine, screen: Screen) -> String {
    links(machine, screen) + &hops(machine, screen) + &hop_rules(machine) + &requests(machine)
}

type Ends = (Vec<NodeId>, Vec<NodeId>);

/// Lists links by class and bandwidth; `0-1` is a link in both directions, `7>3` in one.
fn links(machine: &Machine, screen: Screen) -> String {
    let ends: Vec<Ends> = (0..machine.links.len() as u32)
        .map(|l| machine.link_ends(LinkId(l)))
        .collect();
    let mut out = String::new();
    let by_width = by_width(machine, &ends);
    if !by_width.is_empty() {
        out.push_str("\nlinks (a-b alike both ways, a>b for data from a to b)\n");
    }
    let column = by_width.keys().map(|(_, class)| class.len()).max().unwrap_or(0);
    for ((Reverse(width), class), links) in by_width {
        let class = if column > 0 {
            format!("{class:column$}  ")
        } else {
            String::new()
        };
        out.push_str(&list(
            &format!("{:>12}  {class}", gigabytes(width as f64)),
            links,
            "link",
            screen,
        ));
    }
    if let Some(total) = machine.backplane {
        let _ = writeln!(out, "{:>12}  backplane, shared by all", gigabytes(total));
    }
    let one_way = ends
        .iter()
        .filter(|link| !ends.iter().any(|other| opposite(link, other)));
    let one_way: Vec<String> = one_way
        .map(|(from, to)| format!("{}>{}", group(from), group(to)))
        .collect();
    if !one_way.is_empty() {
        out.push_str(&list("nothing back  ", one_way, "link", screen));
    }
    out
}

fn opposite((from, to): &Ends, other: &Ends) -> bool {
    (from, to) == (&other.1, &other.0)
}

/// Links by bandwidth and class; both directions are one entry if they have the same of both.
fn by_width<'a>(machine: &'a Machine, ends: &[Ends]) -> BTreeMap<(Reverse<u64>, &'a str), Vec<String>> {
    let mut all: BTreeMap<(Reverse<u64>, &str), Vec<String>> = BTreeMap::new();
    for (id, (between, link)) in ends.iter().zip(&machine.links).enumerate() {
        let alike = |other: &Link| other.bandwidth == link.bandwidth && other.class == link.class;
        let twin =
            (0..ends.len()).find(|o| *o != id && opposite(between, &ends[*o]) && alike(&machine.links[*o]));
        if twin.is_none_or(|other| other > id) {
            let arrow = if twin.is_some() { "-" } else { ">" };
            let text = format!("{}{arrow}{}", group(&between.0), group(&between.1));
            let class = link.class.as_deref().unwrap_or_default();
            all.entry((Reverse(link.bandwidth.round() as u64), class))
                .or_default()
                .push(text);
        }
    }
    all
}

/// The first words of many, each a `what`.
fn list(label: &str, mut words: Vec<String>, what: &str, screen: Screen) -> String {
    let more = and_more(words.len().saturating_sub(MAX_WORDS_PER_LINE), what, "--json");
    words.truncate(MAX_WORDS_PER_LINE);
    screen.wrap(
        label,
        words.iter().map(String::as_str).chain(more.split_whitespace()),
    )
}

fn group(nodes: &[NodeId]) -> String {
    match nodes {
        [one] => one.to_string(),
        _ => format!(
            "{{{}}}",
            format_list(&nodes.iter().map(|n| n.0).collect::<Vec<_>>()).replace('-', "..")
        ),
    }
}

/// The nodes through which data go from `memory` to `reader`, including both.
fn stops(machine: &Machine, reader: NodeId, memory: NodeId) -> Vec<NodeId> {
    [&[memory][..], &machine.via(reader, memory), &[reader]].concat()
}

fn path(stops: &[NodeId]) -> String {
    stops
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(">")
}

fn pairs(machine: &Machine) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    machine
        .node_ids()
        .flat_map(|m| machine.node_ids().map(move |r| (r, m)))
        .filter(|(r, m)| r != m)
}

/// Pairs of nodes more than one link apart, by the number of links.
fn hops(machine: &Machine, screen: Screen) -> String {
    let mut by_hops: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (reader, memory) in pairs(machine) {
        let stops = stops(machine, reader, memory);
        if stops.len() > 2 {
            by_hops.entry(stops.len() - 1).or_default().push(path(&stops));
        }
    }
    by_hops
        .into_iter()
        .map(|(hops, routes)| list(&format!("{hops:>7} hops  "), routes, "route", screen))
        .collect()
}

fn hop_rules(machine: &Machine) -> String {
    let rule = |r: &nodewise_machine::HopRule| {
        format!(
            "{:>12}  of the narrower link: {} followed by {}\n",
            format!("{} %", percent(r.factor)),
            r.from,
            r.to
        )
    };
    machine.hop_rules.iter().map(rule).collect()
}

/// A share in per cent, rounded to two decimals.
fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

/// Pairs whose requests, or written data, do not take the reverse route of data that are read.
fn requests(machine: &Machine) -> String {
    let mut found = String::new();
    for (reader, memory) in pairs(machine) {
        let data = stops(machine, reader, memory);
        let request = stops(machine, memory, reader);
        if !data.iter().eq(request.iter().rev()) {
            let width = |r, m| gigabytes(machine.route(r, m).bandwidth);
            let (read, write) = (width(reader, memory), width(memory, reader));
            let (data, request) = (path(&data), path(&request));
            let _ = writeln!(
                found,
                "    {reader} reads {memory} over {data}, {read}; writes to it over {request}, {write}"
            );
        }
    }
    if found.is_empty() {
        return found;
    }
    format!("\nrequests, and what is written, go another way than what is read\n{found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_what_is_left_out_and_where_it_is() {
        let screen = Screen {
            width: 100,
            colour: false,
        };
        let links = |n: usize| (0..n).map(|i| format!("0-{i}")).collect();
        assert!(!list("", links(MAX_WORDS_PER_LINE), "link", screen).contains("more"));
        let text = list("", links(MAX_WORDS_PER_LINE + 2), "link", screen);
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words[MAX_WORDS_PER_LINE..].join(" "), "and 2 more links (--json)");
    }
}
