//! Converts measurements to a machine description.

use super::Measured;
use nodewise_analysis::figures::whole_percent;
use nodewise_machine::inference::{Estimate, Inferred, Survey};
use nodewise_machine::{Machine, Source};

impl Measured {
    /// The links inferred from the bandwidths of flows; `None` if nothing remote was measured.
    #[must_use]
    pub fn inferred(&self) -> Option<Inferred> {
        let local = |(node, row): (usize, &Vec<Option<Estimate>>)| Some(row[node]?.median);
        let local: Vec<Option<f64>> = self.read.iter().enumerate().map(local).collect();
        self.survey.as_ref().map(|survey| Inferred::of(survey, &local))
    }

    /// The machine with measured values in place of assumed ones. `provenance` says when and with which kernel they
    /// were measured: `on 2026-11-22, with Linux 6.1`.
    #[must_use]
    pub fn describe(&self, mut machine: Machine, provenance: &str) -> Machine {
        for (reader, row) in self.latency_ns.iter().enumerate() {
            for (memory, figure) in row.iter().enumerate() {
                if let Some(figure) = figure {
                    machine.latency_ns[reader][memory] = (figure.median * 10.0).round() / 10.0;
                }
            }
        }
        for (node, row) in self.read.iter().enumerate() {
            let route = &mut machine.routes[node][node];
            route.bandwidth = row[node].map_or(route.bandwidth, |f| f.median);
        }
        if let Some(inferred) = self.inferred() {
            inferred.apply(&mut machine);
        }
        let links = machine.links.iter_mut().map(|l| &mut l.bandwidth);
        let routes = machine.routes.iter_mut().flatten().map(|r| &mut r.bandwidth);
        let all = links.chain(routes).chain(&mut machine.backplane);
        all.for_each(|bandwidth| *bandwidth = bandwidth.round().max(1.0));
        for (node, shown) in machine.nodes.iter_mut().enumerate() {
            // The bandwidth of its own CPUs; for a memory without any, the best of other nodes.
            let own = self.read[node][node];
            let best = own.or_else(|| self.best_of(node, shown.cpus.is_empty()));
            shown.bandwidth = best.map_or(shown.bandwidth, |b| b.median.round().max(1.0));
        }
        self.describe_sources(&mut machine, provenance);
        machine.title = "this host, measured".to_owned();
        machine
    }

    fn best_of(&self, memory: usize, without_cpus: bool) -> Option<Estimate> {
        let column = self
            .read
            .iter()
            .filter_map(|row| row[memory])
            .filter(|_| without_cpus);
        column.max_by(|a, b| a.median.total_cmp(&b.median))
    }

    fn describe_sources(&self, machine: &mut Machine, provenance: &str) {
        let mut all: Vec<Source> = Vec::new();
        let all_pairs = machine.cpu_nodes().count() * machine.node_count();
        for (field, matrix, how) in [
            ("latency_ns", &self.latency_ns, "pointer chase"),
            ("bandwidth", &self.read, "reads by all CPUs of a node"),
        ] {
            let figures: Vec<Estimate> = matrix.iter().flatten().flatten().copied().collect();
            if let Some(text) = summary(&figures) {
                let text = format!("measured here, {provenance}: {how}, {text}");
                all.push(source(field, text, false));
            }
            if figures.len() < all_pairs {
                all.extend(rest(machine, field));
            }
        }
        if let Some(survey) = &self.survey {
            all.extend(links(survey, machine, provenance));
        }
        let replaced = |s: &Source| all.iter().any(|new| new.field == s.field);
        let kept: Vec<Source> = machine.sources.iter().filter(|s| !replaced(s)).cloned().collect();
        all.extend(kept);
        all.sort_by(|a, b| (a.assumed, &a.field).cmp(&(b.assumed, &b.field)));
        machine.sources = all;
    }
}

fn source(field: &str, text: String, assumed: bool) -> Source {
    Source {
        field: field.to_owned(),
        text,
        assumed,
    }
}

/// The source of those figures of a field that were not measured.
fn rest(machine: &Machine, field: &str) -> Option<Source> {
    let old = machine.sources.iter().find(|s| s.field == field)?;
    let text = format!("pairs that were not measured: {}", old.text);
    Some(source(&format!("{field}.rest"), text, old.assumed))
}

/// The sources of links: measured simultaneous flows, and assumptions for the others.
fn links(survey: &Survey, machine: &Machine, provenance: &str) -> Vec<Source> {
    let (pairs, left) = survey.pairs();
    let mut all = Vec::new();
    if left < pairs {
        let text = format!(
            "inferred from what reads get beside each other, measured here, {provenance}: {} of {pairs} pairs of flows, \
             each alone and together; what no set of flows fills is not seen, nor a loss under {}",
            pairs - left,
            whole_percent(survey.unseen())
        );
        all.push(source("links", text, false));
        if left > 0 {
            let text = format!("the other {left} pairs of flows: they are taken to share nothing");
            all.push(source("links.apart", text, true));
        }
    } else {
        let text =
            format!("a private link for every flow, as wide as it is alone, measured here, {provenance}");
        let text = if pairs > 0 {
            text + "; no two flows were compared"
        } else {
            text
        };
        all.push(source("links", text, pairs > 0));
    }
    if survey.flows().len() < machine.cpu_nodes().count() * (machine.node_count() - 1) {
        all.extend(rest(machine, "links"));
    }
    all
}

/// Repeats and spread in words: `12 to 40 repeats, spread 0.8 %, at most 3.1 %`.
fn summary(figures: &[Estimate]) -> Option<String> {
    let repeats = || figures.iter().map(|f| f.samples);
    let (least, most) = (repeats().min()?, repeats().max()?);
    let repeats = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    let (spread, largest) = spreads(figures)?;
    Some(format!(
        "median of {repeats} repeats, 95 % interval ±{:.1} %, ±{:.1} % at most",
        100.0 * spread,
        100.0 * largest
    ))
}

/// The median and the largest spread of figures.
fn spreads(figures: &[Estimate]) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = figures.iter().map(Estimate::spread).collect();
    all.sort_by(f64::total_cmp);
    Some((*all.get(all.len() / 2)?, *all.last()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Measured, survey_of};
    use super::*;
    use nodewise_machine::{Flow, NodeId};

    fn measured(figures: [[Option<f64>; 2]; 2]) -> Measured {
        let matrix = |factor: f64| {
            figures
                .map(|row| row.map(|f| f.map(|f| Estimate::exact(f * factor))).to_vec())
                .to_vec()
        };
        let read = matrix(10.0);
        Measured {
            latency_ns: matrix(1.0),
            survey: survey_of(&read, |_| true, together),
            read,
            write: matrix(8.0),
            ..Measured::default()
        }
    }

    /// Measures flows of which none slows down another.
    fn together(flows: &[Flow]) -> Option<Vec<Estimate>> {
        Some(vec![Estimate::exact(1100.0); flows.len()])
    }

    fn source_of(machine: &Machine, field: &str) -> Option<Source> {
        machine.sources.iter().find(|s| s.field == field).cloned()
    }

    #[test]
    fn what_was_measured_replaces_what_was_assumed_and_the_rest_says_so() {
        let base = Machine::named("nehalem-2s").unwrap();
        let all = measured([[Some(70.04), Some(110.0)], [Some(111.0), Some(71.0)]]);
        let machine = all.describe(base.clone(), "on a day, with a kernel");
        machine.validate().unwrap();
        assert_eq!(machine.latency_ns, [[70.0, 110.0], [111.0, 71.0]]);
        assert_eq!(
            (machine.nodes[1].bandwidth, machine.routes[0][1].bandwidth),
            (710.0, 1100.0)
        );
        let latency = source_of(&machine, "latency_ns").unwrap();
        assert!(
            !latency.assumed && latency.text.contains("measured here, on a day, with a kernel"),
            "{latency:?}"
        );
        assert_eq!(source_of(&machine, "latency_ns.rest"), None);

        let part = measured([[Some(70.0), None], [None, None]]);
        let machine = part.describe(base.clone(), "on a day");
        assert_eq!(machine.latency_ns[1], base.latency_ns[1]);
        assert_eq!(machine.nodes[1].bandwidth, base.nodes[1].bandwidth);
        assert!(
            source_of(&machine, "latency_ns.rest")
                .unwrap()
                .text
                .starts_with("pairs that were not measured")
        );
    }

    #[test]
    fn a_single_remote_flow_has_a_link_as_wide_as_it_was_measured() {
        // A node with CPUs and a memory without: the most common machine with unequal memories.
        let text = "name = 'cxl'\ntitle = ''\nlatency_ns = [[100, 250], [250, 100]]\n\
                    nodes = [{ cpus = '0-3', memory = '1G', bandwidth = 50000 }, { memory = '1G', bandwidth = 20000 }]\n\
                    links = [{ between = [0, 1], bandwidth = 8000 }]\n[assumed]\nlinks = 'a guess'";
        let found = measured([[Some(5000.0), Some(2400.0)], [None, None]]);
        let machine = found.describe(Machine::parse(text, "cxl").unwrap(), "today");
        machine.validate().unwrap();
        let flow = Flow::parse_list("1>0", 2).unwrap();
        assert_eq!(
            nodewise_machine::Channels::of(&machine).max_min(&flow),
            [24_000.0]
        );
        assert!(!source_of(&machine, "links").unwrap().assumed);
        assert_eq!(
            source_of(&machine, "links.rest"),
            None,
            "nobody reads from node 1"
        );
    }

    #[test]
    fn links_that_nobody_compared_are_assumed() {
        let base = Machine::named("westmere-4s").unwrap();
        let remote =
            |reader: usize, memory: usize| (reader < 2 && memory < 2).then_some(Estimate::exact(900.0));
        let read = (0..4)
            .map(|r| (0..4).map(|m| remote(r, m)).collect())
            .collect::<Vec<Vec<_>>>();
        let found = |measure: &dyn Fn(&[Flow]) -> Option<Vec<Estimate>>| {
            let unknown = vec![vec![None; 4]; 4];
            let measured = Measured {
                latency_ns: unknown.clone(),
                write: unknown,
                survey: survey_of(&read, |_| true, measure),
                read: read.clone(),
                ..Measured::default()
            };
            measured.describe(base.clone(), "today")
        };
        let cut = found(&|_| None);
        assert!(source_of(&cut, "links").unwrap().assumed && source_of(&cut, "links.rest").is_some());
        let machine = found(&|flows| Some(vec![Estimate::exact(900.0); flows.len()]));
        assert!(
            !source_of(&machine, "links").unwrap().assumed && source_of(&machine, "links.apart").is_none()
        );
        assert!(
            source_of(&machine, "links.rest")
                .unwrap()
                .text
                .contains("not measured")
        );
        assert_eq!(machine.route(NodeId(0), NodeId(1)).bandwidth, 900.0);
    }
}
