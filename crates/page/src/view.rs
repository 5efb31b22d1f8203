//! The documents of one profile, made on demand.

use crate::film::Film;
use crate::pyramid::{CELLS, Pyramid, cells, coarsest};
use crate::strip::{Strip, StripRun};
use crate::sums::Pages;
use crate::threads::Placements;
use crate::traffic::matrices;
use crate::{cell_threads, machine, threads, tile};
use nodewise_analysis::{Affinity, Histogram, NodeCounts, SharingClass, sampled_share, thread_numbers};
use nodewise_machine::Machine;
use nodewise_placement::Mapping;
use nodewise_profile::{BASE_PAGE_SHIFT, ObjectId, Profile};
use nodewise_report::Report;
use nodewise_simulation::Simulation;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// The input of a view.
#[derive(Debug)]
pub struct Findings<'a> {
    /// Folder of the profile, as shown.
    pub folder: String,
    /// The profile without its access table.
    pub profile: &'a Profile,
    /// The machine for which times are predicted.
    pub machine: &'a Machine,
    /// Predicted costs, parallel to the mappings.
    pub simulation: &'a Simulation,
    /// Page × thread counts.
    pub histogram: Histogram,
    /// The CPU and node of each thread.
    pub affinity: Affinity,
    /// The mappings that are compared, first-touch first; parallel to the report's policies.
    pub mappings: Vec<Mapping>,
    /// The report on the profile.
    pub report: Report,
    /// The objects of the report, in its order.
    pub objects: Vec<ObjectId>,
    /// The film of the run.
    pub film: Film,
    /// The placements that the view of threads compares.
    pub placements: Placements,
}

/// The documents of one profile. Keeps a few bytes per page in addition to the histogram.
#[derive(Debug)]
pub struct View {
    folder: String,
    report: Report,
    pages: Pages,
    strip: Strip,
    sums: Pyramid,
    threads: Pyramid,
    /// Properties of the strip that are the same in a server and in a file.
    facts: Value,
    machine_json: Vec<u8>,
    threads_json: Vec<u8>,
    film: Vec<u8>,
}

impl View {
    /// Builds the view, in one pass over all pages.
    ///
    /// # Panics
    /// If there is no mapping.
    #[must_use]
    pub fn new(findings: Findings<'_>) -> Self {
        let Findings {
            profile,
            machine,
            report,
            ..
        } = findings;
        let strip = Strip::of(&findings.histogram);
        let (affinity, nodes) = (&findings.affinity, machine.node_count());
        let pages = Pages::new(profile, findings.histogram, affinity, findings.mappings, nodes);
        let numbers = thread_numbers(profile);
        let facts = facts(profile, &report, &findings.objects, &pages, &strip, &numbers);
        let homes: Vec<&[u8]> = pages.homes.iter().map(Vec::as_slice).collect();
        let traffic = matrices(&pages, &pages.affinity, &homes);
        let range = |share: f64| {
            let several = !report.has_one_node();
            let unseen = report.sampling.as_ref().filter(|_| several)?.unseen;
            let accesses = sampled_share(share, report.totals.accesses, unseen);
            Some([accesses.low, accesses.high])
        };
        let threads_json = threads::document(&pages, &numbers, &findings.placements, range);
        drop(findings.placements);
        let predictions = &findings.simulation.predictions;
        let machine_json = machine::document(machine, predictions, traffic, report.program.exact);
        let add = |positions: Range<usize>, row: &mut [u64]| add(&pages, &strip, positions, row);
        let sums = Pyramid::new(strip.len(), pages.shape.width(), add);
        let add = |positions: Range<usize>, row: &mut [u64]| add_threads(&pages, &strip, positions, row);
        let threads = Pyramid::new(strip.len(), pages.affinity.nodes.len().max(1), add);
        Self {
            folder: findings.folder,
            report,
            sums,
            threads,
            facts,
            machine_json,
            threads_json,
            film: findings.film.0,
            pages,
            strip,
        }
    }

    /// Name of the recorded program.
    #[must_use]
    pub fn title(&self) -> String {
        self.report.program.title()
    }

    /// Folder of the profile, as shown.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The report on the profile.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Memory in use in addition to the histogram, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.bytes() + self.sums.bytes() + self.threads.bytes()
    }

    /// Number of pages in the strip.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.strip.len()
    }

    /// The coarsest level, at which a single tile holds all pages.
    #[must_use]
    pub fn coarsest(&self) -> u32 {
        coarsest(self.strip.len())
    }

    /// Number of tiles of a level, at least one.
    #[must_use]
    pub fn tiles(&self, level: u32) -> usize {
        cells(self.strip.len(), level).div_ceil(CELLS).max(1)
    }

    /// A document by its name inside the profile: `report.json`, `tile/0/3`.
    #[must_use]
    pub fn document(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        Some(match name {
            "report.json" => Cow::Owned(json_of(&self.report)),
            "machine.json" => Cow::Borrowed(&self.machine_json),
            "threads.json" => Cow::Borrowed(&self.threads_json),
            "strip.json" => Cow::Owned(self.strip_json(0)),
            "film" => Cow::Borrowed(&self.film),
            _ => {
                let mut parts = name.split('/');
                let (kind, level, index) = (parts.next()?, parts.next()?, parts.next()?);
                let (level, index) = (number(level)? as u32, number(index)?);
                let known = parts.next().is_none() && level <= self.coarsest() && index < self.tiles(level);
                match kind {
                    "tile" if known => Cow::Owned(self.tile(level, index)),
                    "detail" if known => {
                        Cow::Owned(self.detail(level, index, cell_threads::MAX_NAMED_THREADS))
                    }
                    _ => return None,
                }
            }
        })
    }

    /// Makes `strip.json` if `finest` is the finest available level.
    #[must_use]
    pub(crate) fn strip_json(&self, finest: u32) -> Vec<u8> {
        let mut facts = self.facts.clone();
        facts["finest"] = finest.into();
        json_of(&facts)
    }

    pub(crate) fn tile(&self, level: u32, index: usize) -> Vec<u8> {
        let cells = self.cells(level, index);
        let rows = self.sums.rows(level, cells.clone(), |positions, row| {
            add(&self.pages, &self.strip, positions, row);
        });
        let place = tile::Place {
            level,
            first_cell: cells.start,
            pages: cells.map(|c| self.page_in_run(c << level)).collect(),
        };
        tile::pack(&place, self.pages.shape, &rows)
    }

    pub(crate) fn detail(&self, level: u32, index: usize, named: usize) -> Vec<u8> {
        let cells = self.cells(level, index);
        let rows = self.threads.rows(level, cells.clone(), |positions, row| {
            add_threads(&self.pages, &self.strip, positions, row);
        });
        let threads = self.pages.affinity.nodes.len().max(1);
        cell_threads::pack(level, cells.start, threads, named, &rows)
    }

    fn cells(&self, level: u32, index: usize) -> Range<usize> {
        let all = cells(self.strip.len(), level);
        (index * CELLS).min(all)..((index + 1) * CELLS).min(all)
    }

    /// The number of the page at a position, relative to the first page of its run.
    fn page_in_run(&self, position: usize) -> u32 {
        let index = self.strip.pages(position..position + 1).next().map(|p| p.start);
        let (Some(index), Some(run)) = (index, self.strip.run_at(position)) else {
            return 0;
        };
        let pages = (self.pages.histogram.pages[index].0 - run.page.0) >> self.pages.histogram.shift;
        u32::try_from(pages).unwrap_or(u32::MAX)
    }
}

fn add(pages: &Pages, strip: &Strip, positions: Range<usize>, row: &mut [u64]) {
    let mut counts = NodeCounts::new(pages.shape.nodes);
    strip
        .pages(positions)
        .for_each(|range| pages.add(range, &mut counts, row));
}

fn add_threads(pages: &Pages, strip: &Strip, positions: Range<usize>, row: &mut [u64]) {
    strip
        .pages(positions)
        .for_each(|range| pages.add_threads(range, row));
}

/// Parses a decimal number in canonical form.
pub(crate) fn number(text: &str) -> Option<usize> {
    let plain = text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    text.parse().ok().filter(|_| plain && !leading)
}

pub(crate) fn json_of(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs serialize")
}

fn facts(
    profile: &Profile,
    report: &Report,
    objects: &[ObjectId],
    pages: &Pages,
    strip: &Strip,
    numbers: &[u32],
) -> Value {
    let index: BTreeMap<ObjectId, usize> = objects.iter().enumerate().map(|(i, o)| (*o, i)).collect();
    let run = |run: &StripRun| {
        let known = index.get(&run.object).filter(|_| run.objects == 1);
        let name = match known.and_then(|i| report.objects.get(*i)) {
            Some(object) => object.name.clone(),
            None if run.objects > 1 => format!("{} small objects", run.objects),
            None => profile
                .object(run.object)
                .map_or_else(|| "unknown".to_owned(), |o| o.name.clone()),
        };
        let address = run.page.virtual_number() << BASE_PAGE_SHIFT;
        json!({
            "object": known.map_or(-1, |i| *i as i64), "name": name, "first": run.first, "pages": run.pages,
            "address": format!("{address:#x}"),
        })
    };
    let nodes: Vec<u32> = pages.affinity.nodes.iter().map(|n| n.0).collect();
    json!({
        "pages": strip.len(),
        "cells": CELLS,
        "finest": 0,
        "coarsest": coarsest(strip.len()),
        "nodes": pages.shape.nodes,
        "policies": report.policies.iter().map(|p| &p.policy).collect::<Vec<_>>(),
        "classes": SharingClass::ALL.map(SharingClass::name),
        "objects": strip.runs.iter().map(run).collect::<Vec<_>>(),
        "threads": { "numbers": numbers, "nodes": nodes },
    })
}
