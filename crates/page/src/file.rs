//! The page as one self-contained file: the same documents, at the finest resolution that fits.

use crate::archive::{Archive, size};
use crate::base64::base64;
use crate::pyramid::cells;
use crate::truncated::truncated;
use crate::view::json_of;
use crate::{Documents, SessionDocuments, View, shell};
use nodewise_report::text::{self, Screen};
use std::collections::BTreeMap;

/// Size limit of all profiles in a file, compressed; with the script and in base64, the file stays below 5 MB.
const BUDGET: usize = 3_300_000;
/// Size limit of one profile's report, which is part of [`BUDGET`].
const REPORT_BUDGET: usize = 600_000;
/// Largest number of cells of the finest level.
const MAX_FINEST_CELLS: usize = 100_000;
/// Numbers of threads per cell to try, largest first.
const NAMED_THREADS_TO_TRY: [usize; 4] = [16, 6, 3, 1];

/// The page as one self-contained HTML file.
#[must_use]
pub fn write(documents: &SessionDocuments) -> String {
    let views = documents.views();
    let mut archive = Archive::default();
    let session = documents.document("session.json").unwrap_or_default();
    archive.add("session.json".to_owned(), &session);
    for (index, view) in views.iter().enumerate() {
        add(&mut archive, view, &format!("p/{index}"), BUDGET / views.len());
    }
    let screen = Screen {
        width: 100,
        colour: false,
    };
    let titles: Vec<String> = views.iter().map(|v| v.title()).collect();
    let texts: Vec<String> = views.iter().map(|v| text::write(v.report(), screen)).collect();
    shell::whole(
        &titles.join(", "),
        &texts.join("\n"),
        &base64(&archive.compressed()),
    )
}

/// Adds a profile's documents at the finest resolution that fits the budget.
fn add(archive: &mut Archive, view: &View, folder: &str, budget: usize) {
    let mut left = budget;
    let mut add = |name: String, document: &[u8]| archive.add(format!("{folder}/{name}"), document);
    let report = json_of(&truncated(view.report(), REPORT_BUDGET.min(budget / 3)));
    let fixed = ["machine.json", "threads.json", "film"];
    let fixed = fixed.map(|name| (name, view.document(name).unwrap_or_default()));
    left = left.saturating_sub(size(&report));
    add("report.json".to_owned(), &report);
    for (name, document) in fixed {
        left = left.saturating_sub(size(&document));
        add(name.to_owned(), &document);
    }
    left = left.saturating_sub(size(&view.strip_json(0)));
    let Fineness { finest, named } = Pictures::of(view).within(left);
    add("strip.json".to_owned(), &view.strip_json(finest));
    for level in finest..=view.coarsest() {
        for tile in 0..view.tiles(level) {
            add(format!("tile/{level}/{tile}"), &view.tile(level, tile));
            add(format!("detail/{level}/{tile}"), &view.detail(level, tile, named));
        }
    }
}

/// The resolution at which a strip is written to a file.
#[derive(Clone, Copy, Debug)]
struct Fineness {
    finest: u32,
    named: usize,
}

/// Sizes of a view's tiles and details, computed on demand.
struct Pictures<'a> {
    view: &'a View,
    tiles: BTreeMap<u32, usize>,
    details: BTreeMap<(u32, usize), usize>,
}

impl<'a> Pictures<'a> {
    fn of(view: &'a View) -> Self {
        Self {
            view,
            tiles: BTreeMap::new(),
            details: BTreeMap::new(),
        }
    }

    /// The finest level that fits into the budget and, at this level, the largest number of named threads; the coarsest
    /// level with one thread if nothing fits.
    fn within(mut self, budget: usize) -> Fineness {
        let (pages, coarsest) = (self.view.pages(), self.view.coarsest());
        let levels = (0..=coarsest).filter(|l| *l == coarsest || cells(pages, *l) <= MAX_FINEST_CELLS);
        let mut choices =
            levels.flat_map(|finest| NAMED_THREADS_TO_TRY.map(|named| Fineness { finest, named }));
        let least = Fineness {
            finest: coarsest,
            named: 1,
        };
        choices
            .find(|choice| self.size(*choice, budget) <= budget)
            .unwrap_or(least)
    }

    /// Size at this resolution. A lower bound if it exceeds `enough`, because the sum then stops early.
    fn size(&mut self, Fineness { finest, named }: Fineness, enough: usize) -> usize {
        let mut sum = 0;
        for level in finest..=self.view.coarsest() {
            sum += self.tiles(level);
            if sum <= enough {
                sum += self.details(level, named);
            }
            if sum > enough {
                break;
            }
        }
        sum
    }

    fn tiles(&mut self, level: u32) -> usize {
        let view = self.view;
        let all = || (0..view.tiles(level)).flat_map(|tile| view.tile(level, tile));
        *self
            .tiles
            .entry(level)
            .or_insert_with(|| size(&all().collect::<Vec<u8>>()))
    }

    fn details(&mut self, level: u32, named: usize) -> usize {
        let view = self.view;
        let all = || (0..view.tiles(level)).flat_map(|tile| view.detail(level, tile, named));
        *self
            .details
            .entry((level, named))
            .or_insert_with(|| size(&all().collect::<Vec<u8>>()))
    }
}
