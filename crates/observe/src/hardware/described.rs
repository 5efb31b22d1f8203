//! What was measured, as a machine.

use super::Measured;
use nodewise_machine::inference::{Estimate, Inferred};
use nodewise_machine::{Machine, Source};

impl Measured {
    /// What the flows' bandwidths say about links; `None` on one node.
    #[must_use]
    pub fn inferred(&self) -> Option<Inferred> {
        let local = |(node, row): (usize, &Vec<Option<Estimate>>)| Some(row[node]?.median);
        let local: Vec<Option<f64>> = self.read.iter().enumerate().map(local).collect();
        self.survey.as_ref().map(|survey| Inferred::of(survey, &local))
    }

    /// The machine with what was measured in the place of what was assumed. `told` says when and with
    /// which kernel: `on 2026-11-22, with Linux 6.1`.
    #[must_use]
    pub fn describe(&self, mut machine: Machine, told: &str) -> Machine {
        for (reader, row) in self.latency_ns.iter().enumerate() {
            for (memory, figure) in row.iter().enumerate() {
                if let Some(figure) = figure {
                    machine.latency_ns[reader][memory] = (figure.median * 10.0).round() / 10.0;
                }
            }
        }
        if let Some(inferred) = self.inferred() {
            inferred.apply(&mut machine);
        }
        for (reader, row) in self.read.iter().enumerate() {
            for (memory, figure) in row.iter().enumerate() {
                if let Some(figure) = figure {
                    machine.routes[reader][memory].bandwidth = figure.median.round().max(1.0);
                }
            }
        }
        machine
            .links
            .iter_mut()
            .for_each(|l| l.bandwidth = l.bandwidth.round().max(1.0));
        machine.backplane = machine.backplane.map(|b| b.round().max(1.0));
        for (node, shown) in machine.nodes.iter_mut().enumerate() {
            // What its own CPUs read, or for memory without any what others get at most.
            let own = self.read[node][node];
            let best = own.or_else(|| self.best_of(node, shown.cpus.is_empty()));
            shown.bandwidth = best.map_or(shown.bandwidth, |b| b.median.round().max(1.0));
        }
        self.tell_sources(&mut machine, told);
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

    fn tell_sources(&self, machine: &mut Machine, told: &str) {
        let measured = |field: &str, text: String| Source {
            field: field.to_owned(),
            text,
            assumed: false,
        };
        let mut all: Vec<Source> = Vec::new();
        let all_pairs = machine.cpu_nodes().count() * machine.node_count();
        for (field, matrix, how) in [
            ("latency_ns", &self.latency_ns, "pointer chase"),
            ("bandwidth", &self.read, "reads by all CPUs of a node"),
        ] {
            let figures: Vec<Estimate> = matrix.iter().flatten().flatten().copied().collect();
            if let Some(text) = summary(&figures) {
                all.push(measured(field, format!("measured here, {told}: {how}, {text}")));
            }
            if figures.len() < all_pairs
                && let Some(old) = machine.sources.iter().find(|s| s.field == field)
            {
                let text = format!("pairs that were not measured: {}", old.text);
                all.push(Source {
                    field: format!("{field}.rest"),
                    text,
                    assumed: old.assumed,
                });
            }
        }
        if let Some(survey) = &self.survey {
            let (pairs, left) = survey.pairs();
            let text = format!(
                "inferred from what reads get beside each other, measured here, {told}: {} of {pairs} pairs of flows, \
                 each alone and together; what no set of flows fills is not seen",
                pairs - left
            );
            all.push(measured("links", text));
        }
        let replaced = |s: &Source| all.iter().any(|new| new.field == s.field);
        let kept: Vec<Source> = machine.sources.iter().filter(|s| !replaced(s)).cloned().collect();
        all.extend(kept);
        all.sort_by(|a, b| (a.assumed, &a.field).cmp(&(b.assumed, &b.field)));
        machine.sources = all;
    }
}

/// `12 to 40 repeats, spread 0.8 %, at most 3.1 %`.
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

/// The middle and the largest spread of figures.
fn spreads(figures: &[Estimate]) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = figures.iter().map(Estimate::spread).collect();
    all.sort_by(f64::total_cmp);
    Some((*all.get(all.len() / 2)?, *all.last()?))
}

#[cfg(test)]
mod tests {
    use super::super::Measured;
    use super::*;
    use std::time::Duration;

    fn measured(figures: [[Option<f64>; 2]; 2]) -> Measured {
        let matrix = |factor: f64| {
            figures
                .map(|row| row.map(|f| f.map(|f| Estimate::exact(f * factor))).to_vec())
                .to_vec()
        };
        Measured {
            latency_ns: matrix(1.0),
            read: matrix(10.0),
            write: matrix(8.0),
            survey: None,
            divisible: Vec::new(),
            memory: vec![1 << 20; 2],
            huge: 1.0,
            notes: Vec::new(),
            took: Duration::ZERO,
            cut_short: false,
        }
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
        let source =
            |machine: &Machine, field: &str| machine.sources.iter().find(|s| s.field == field).cloned();
        let said = source(&machine, "latency_ns").unwrap();
        assert!(
            !said.assumed && said.text.contains("measured here, on a day, with a kernel"),
            "{said:?}"
        );
        assert_eq!(source(&machine, "latency_ns.rest"), None);

        let part = measured([[Some(70.0), None], [None, None]]);
        let machine = part.describe(base.clone(), "on a day");
        assert_eq!(machine.latency_ns[1], base.latency_ns[1]);
        assert_eq!(machine.nodes[1].bandwidth, base.nodes[1].bandwidth);
        assert!(
            source(&machine, "latency_ns.rest")
                .unwrap()
                .text
                .starts_with("pairs that were not measured")
        );
    }
}
