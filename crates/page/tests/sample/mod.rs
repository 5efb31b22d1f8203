//! Views of generated programs: objects that may interleave, pages with any accesses, any machine.
#![allow(dead_code, reason = "not every test needs all of it")]

use nodewise_advise::advise;
use nodewise_analysis::{Affinity, Histogram, Samples, Timeline, Usage, compact_order, read};
use nodewise_machine::{CpuId, Machine, Node, Route};
use nodewise_page::{FilmBuilder, Findings, Placement, Placements, View};
use nodewise_placement::policies::Nothing;
use nodewise_placement::{Context, Mapping, page_policies};
use nodewise_profile::*;
use nodewise_report::Report;
use nodewise_simulation::{Parameters, simulate};

pub struct Sample {
    pub profile: Profile,
    pub accesses: InMemory,
    pub machine: Machine,
}

/// A view with the data that it was made from.
pub struct Made {
    pub view: View,
    pub histogram: Histogram,
    pub affinity: Affinity,
    pub mappings: Vec<Mapping>,
    pub report: Report,
    /// Time to make the view, seconds.
    pub seconds: f64,
}

impl Sample {
    /// A sample whose numbers of objects, threads and slices follow from the rows.
    pub fn new(machine: Machine, rows: Vec<Access>) -> Self {
        let most = |of: fn(&Access) -> u32| rows.iter().map(of).max().unwrap_or(0);
        let object = |id: u32| Object {
            kind: ObjectKind::ALL[1 + id as usize % 5],
            name: format!("object {id}"),
            pages: 1,
            bytes: BASE_PAGE_SIZE,
            ..Object::default()
        };
        let slice = |s: u32| Slice {
            start_ns: u64::from(s) * 1_000_000,
            end_ns: u64::from(s + 1) * 1_000_000,
        };
        let mut profile = Profile {
            objects: (0..=most(|r| r.object.0)).map(object).collect(),
            threads: vec![Thread::default(); most(|r| r.thread.0) as usize + 1],
            regions: vec![Region::default()],
            slices: (0..=most(|r| r.slice.0)).map(slice).collect(),
            sites: vec![Site::default()],
            ..Profile::default()
        };
        profile.meta.observer = Observer::Synthetic;
        profile.meta.command = vec!["./made-up".into()];
        profile.meta.wall_ns = 1_000_000_000;
        Self {
            profile,
            accesses: InMemory::new(rows),
            machine,
        }
    }

    pub fn made(&self, policies: &str) -> Made {
        let Self {
            profile,
            accesses,
            machine,
        } = self;
        let Ok(histogram) = Histogram::build(accesses, profile.threads.len(), 0);
        let affinity = Affinity::of_cpus("compact", profile, machine, &compact_order(machine));
        let context = Context {
            profile,
            histogram: &histogram,
            affinity: &affinity,
            machine,
        };
        let policies = page_policies(policies, machine, &Nothing).unwrap();
        let mappings: Vec<Mapping> = policies.iter().map(|p| p.place(&context)).collect();
        let Ok(simulation) = simulate(&context, &mappings, accesses, &Parameters::default());
        let Ok(usage) = Usage::of(accesses, profile, &histogram);
        let Ok(samples) = Samples::of(accesses, profile, &histogram, &affinity, machine.node_count());
        let advice = advise(
            &context,
            &simulation,
            &mappings[0],
            &usage,
            None,
            &Default::default(),
            samples,
        );
        let nodes = machine.node_count();
        let Ok(timeline) = Timeline::of(
            accesses,
            profile,
            &histogram,
            &affinity,
            &mappings[0].nodes,
            nodes,
        );
        let report = Report::new(&nodewise_report::Findings {
            context: &context,
            mappings: &mappings,
            simulation: &simulation,
            moving: None,
            copies: &[],
            advice: &advice,
            timeline: &timeline,
        });
        let start = std::time::Instant::now();
        let homes = &mappings[0].nodes;
        let mut film = FilmBuilder::new(&histogram, &affinity, homes, nodes, &profile.slices);
        let Ok(()) = read(accesses, &mut [&mut film]);
        let placement = |mapping: usize| Placement {
            affinity: affinity.clone(),
            mapping: mappings[mapping].clone(),
        };
        let findings = Findings {
            folder: "made-up".into(),
            profile,
            machine,
            simulation: &simulation,
            histogram: histogram.clone(),
            affinity: affinity.clone(),
            mappings: mappings.clone(),
            report: report.clone(),
            objects: advice.objects.iter().map(|o| o.blame.object).collect(),
            film: film.finish(),
            placements: Placements {
                in_order: None,
                before: placement(0),
                after: placement(mappings.len() - 1),
            },
        };
        let view = View::new(findings);
        Made {
            view,
            histogram,
            affinity,
            mappings,
            report,
            seconds: start.elapsed().as_secs_f64(),
        }
    }
}

/// A machine with two CPUs per node, and equal distances between nodes.
pub fn machine(nodes: u32) -> Machine {
    let node = |n: u32| Node {
        os_index: n,
        cpus: vec![CpuId(2 * n), CpuId(2 * n + 1)],
        memory: 1 << 34,
        bandwidth: 10_000.0,
        kind: None,
        socket: None,
        cache: None,
    };
    let route = |from: u32, to: u32| Route {
        links: Vec::new(),
        bandwidth: if from == to { 10_000.0 } else { 5_000.0 },
    };
    let row = |from: u32| {
        (0..nodes)
            .map(|to| if from == to { 90.0 } else { 150.0 })
            .collect()
    };
    Machine {
        name: format!("{nodes} nodes"),
        title: format!("{nodes} nodes"),
        page_size: BASE_PAGE_SIZE,
        nodes: (0..nodes).map(node).collect(),
        latency_ns: (0..nodes).map(row).collect(),
        links: Vec::new(),
        routes: (0..nodes)
            .map(|a| (0..nodes).map(|b| route(a, b)).collect())
            .collect(),
        hop_rules: Vec::new(),
        backplane: None,
        sources: Vec::new(),
    }
}

/// Header keys and columns, as `web/src/packed.ts` reads them.
pub struct Packed {
    pub facts: serde_json::Value,
    body: Vec<u8>,
}

impl Packed {
    pub fn of(view: &View, name: &str) -> Self {
        let bytes = view.document(name).unwrap_or_else(|| panic!("no {name}"));
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        Self {
            facts: serde_json::from_slice(&bytes[..end]).unwrap(),
            body: bytes[end + 1..].to_vec(),
        }
    }

    pub fn column(&self, name: &str) -> Vec<f64> {
        let mut at = 0;
        for column in self.facts["columns"].as_array().unwrap() {
            let (kind, length) = (column[1].as_str().unwrap(), column[2].as_u64().unwrap() as usize);
            let wide = match kind {
                "u8" => 1,
                "u16" => 2,
                _ => 4,
            };
            let bytes = &self.body[at..at + wide * length];
            if column[0] == name {
                let number = |b: &[u8]| match *b {
                    [one] => f64::from(one),
                    [a, b] => f64::from(u16::from_le_bytes([a, b])),
                    [a, b, c, d] if kind == "u32" => f64::from(u32::from_le_bytes([a, b, c, d])),
                    [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
                    _ => unreachable!("columns are 1, 2 or 4 bytes wide"),
                };
                return bytes.chunks(wide).map(number).collect();
            }
            at += (wide * length).next_multiple_of(4);
        }
        panic!("no column {name}")
    }
}

/// A column, concatenated over all tiles or details of a level.
pub fn level(view: &View, kind: &str, level: u32, column: &str) -> Vec<f64> {
    let tiles = 0..view.tiles(level);
    tiles
        .flat_map(|i| Packed::of(view, &format!("{kind}/{level}/{i}")).column(column))
        .collect()
}

pub fn json(view: &View, name: &str) -> serde_json::Value {
    serde_json::from_slice(&view.document(name).unwrap_or_else(|| panic!("no {name}"))).unwrap()
}
