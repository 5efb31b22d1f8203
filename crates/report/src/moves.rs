//! The part of the report on page migrations.

use nodewise_analysis::{Journey, MoveCounts};
use nodewise_profile::{Meta, Migration as Recorded, MoveKind, ObjectId, PageNumber, Profile};
use nodewise_simulation::{Moved, Prediction};
use serde::Serialize;
use std::collections::BTreeMap;

/// Largest number of migration rows, and of runs of home nodes over all objects, in a report. The profile's table
/// `migrations` has all moves.
const MAX_ROWS: usize = 10_000;
/// Number of equal time steps into which the recording is divided for [`Moves::over_time`].
const TIME_STEPS: u64 = 60;
/// Largest number of page runs in [`Moves::journeys`].
const MAX_JOURNEYS: usize = 24;

/// One recorded move of a run of pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Migration {
    /// Time of the move, in seconds since the recording began.
    pub seconds: f64,
    /// Name of the object.
    pub object: String,
    /// First page of the run, counted from the object's first page.
    pub page: u64,
    /// Number of 4 KiB pages that moved together.
    pub pages: u32,
    /// The node that the pages leave.
    pub from: u16,
    /// The node that the pages go to.
    pub to: u16,
    /// Who moved the pages: a policy as written on the command line, `kernel` or `unknown`.
    pub by: String,
    /// Kind of the move for the first page of the run: `first`, `ping-pong` (back to the node just left) or `multiple`.
    pub kind: &'static str,
    /// Accesses or samples per page from the target node.
    pub to_count: f64,
    /// Accesses or samples per page from the source node; `null` if the policy could not see them.
    pub home_count: Option<f64>,
    /// The threshold that `to_count` had to exceed.
    #[serde(rename = "against")]
    pub count_threshold: f64,
}

/// Totals over all moves. A 4 KiB page is counted once for each of its moves, except in `pages`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moves {
    /// The simulated policy that would have made the moves; `null` if the moves were recorded.
    pub simulated: Option<String>,
    /// Number of pages that moved at least once.
    pub pages: u64,
    /// Share of the accesses or samples that are local if pages begin where first-touch places them and each move takes
    /// effect at the end of its slice. `null` for recorded moves if there are none or the threads' nodes were not
    /// recorded.
    pub local_fraction: Option<f64>,
    /// If accesses are samples: lower and upper bound of the share of accesses that was local; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Page moves by nodewise's policies.
    pub ours: u64,
    /// Page moves by the kernel's NUMA balancing that were observed for individual pages.
    pub kernel: u64,
    /// Page moves made neither by nodewise nor, according to the kernel's counter, by the kernel.
    pub others: u64,
    /// Page moves according to the kernel's own counter; `null` if it was not read.
    pub kernel_counted: Option<u64>,
    /// Moves back to the node just left.
    pub ping_pongs: u64,
    /// Second and later moves that do not go back to the node just left.
    pub multiple: u64,
    /// Moves away from the node that used the page most; `null` if no policy saw the accesses from the home node.
    pub incorrect: Option<u64>,
    /// Number of page moves by each policy and the kernel.
    pub by: Vec<MovedBy>,
    /// Moves that a policy proposed but a limit prevented, by cause.
    pub held_back: Vec<HeldBack>,
    /// Pages moved by nodewise's policies, `[from][to]`.
    pub matrix: Vec<Vec<u64>>,
    /// Pages moved by the kernel, `[from][to]`.
    pub kernel_matrix: Vec<Vec<u64>>,
    /// Pages moved by others, `[from][to]`.
    pub others_matrix: Vec<Vec<u64>>,
    /// Pages by number of moves: entry `i` counts those that moved `i` times.
    pub pages_by_moves: Vec<u64>,
    /// Objects with moved pages, those with most moves first.
    pub objects: Vec<MovedObject>,
    /// Moves in steps of time, by pair of nodes; steps without moves are left out.
    pub over_time: Vec<Step>,
    /// The sequence of home nodes of the pages with most moves.
    pub journeys: Vec<PageJourney>,
}

/// Number of pages that one policy, or the kernel, moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedBy {
    /// A policy as written on the command line, or `kernel`.
    pub by: String,
    /// Number of pages moved.
    pub pages: u64,
}

/// Proposed moves that one limit prevented.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldBack {
    /// `budget`, `rate`, `hysteresis`, `few-samples` …
    pub cause: String,
    /// Number of pages held back.
    pub pages: u64,
}

/// The moves of one object's pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedObject {
    /// Name of the object.
    pub name: String,
    /// Number of pages that moved at least once.
    pub pages: u64,
    /// Page moves by nodewise's policies.
    pub ours: u64,
    /// Page moves by the kernel.
    pub kernel: u64,
    /// Page moves made neither by nodewise's policies nor by the kernel.
    pub others: u64,
    /// Moves back to the node just left.
    pub ping_pongs: u64,
    /// Second and later moves that do not go back to the node just left.
    pub multiple: u64,
    /// Number of all pages of the object.
    pub of_pages: u64,
    /// First and last home node of the object's moved pages.
    pub homes: Vec<HomeChange>,
}

/// A run of consecutive pages with the same first and the same last home node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HomeChange {
    /// First page of the run, counted from the object's first page.
    pub page: u64,
    /// Length of the run in pages.
    pub pages: u64,
    /// The node before the first move.
    pub first: u16,
    /// The node after the last move.
    pub last: u16,
}

/// Moves between two nodes in a step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Start of the step, in seconds since the recording began.
    pub start_seconds: f64,
    /// End of the step, in seconds since the recording began.
    pub end_seconds: f64,
    /// The node that the pages leave.
    pub from: u16,
    /// The node that the pages go to.
    pub to: u16,
    /// Pages moved by nodewise's policies.
    pub ours: u64,
    /// Pages moved by the kernel.
    pub kernel: u64,
    /// Pages moved by others.
    pub others: u64,
}

/// A run of pages that always moved together, and its home nodes over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageJourney {
    /// Name of the object.
    pub object: String,
    /// First page of the run, counted from the object's first page.
    pub page: u64,
    /// Length of the run in pages.
    pub pages: u64,
    /// The successive home nodes, in order of time.
    pub stays: Vec<HomePeriod>,
}

/// A period on one home node, which lasts until the next one begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HomePeriod {
    /// Start of the period, in seconds since the recording began; 0 for the first.
    pub seconds: f64,
    /// The home node of the pages.
    pub node: u16,
    /// Who moved the pages there, as in [`Migration::by`]; `null` for the first.
    pub by: Option<String>,
    /// Kind of that move: `first`, `ping-pong` or `multiple`; `null` for the first period.
    pub kind: Option<&'static str>,
}

/// Builds rows and totals from a profile, with the names that objects have in the report.
struct Writer<'a> {
    profile: &'a Profile,
    names: &'a BTreeMap<ObjectId, String>,
}

/// Rows and totals of the moves that a policy would have made, in the same form as [`recorded`] moves. `names` as in
/// [`recorded`].
pub(crate) fn simulated(
    prediction: &Prediction,
    page_size: u64,
    profile: &Profile,
    names: &BTreeMap<ObjectId, String>,
) -> (Vec<Migration>, Option<Moves>) {
    let nothing = Moved::default();
    let moved = prediction.moved.as_ref().unwrap_or(&nothing);
    // The simulation counts prevented moves in pages of `page_size`; the report counts 4 KiB pages.
    let of_base_pages = |(cause, pages)| (cause, pages * page_size / nodewise_profile::BASE_PAGE_SIZE);
    let held_back = moved.held_back.causes().into_iter().map(of_base_pages);
    let moved_profile = Profile {
        migrations: moved.migrations.clone(),
        meta: Meta {
            held_back: held_back.collect(),
            kernel_migrations: None,
            ..profile.meta.clone()
        },
        ..profile.clone()
    };
    let (rows, mut moves) = recorded(&moved_profile, names);
    if let Some(moves) = &mut moves {
        let known = moved.incorrect.iter().zip(&moved.migrations);
        let known = known.filter_map(|(incorrect, m)| Some(u64::from((*incorrect)?) * u64::from(m.len)));
        let known: Vec<u64> = known.collect();
        moves.simulated = Some(prediction.policy.clone());
        moves.incorrect = (!known.is_empty()).then(|| known.iter().sum());
    }
    (rows, moves)
}

/// Rows and totals of the recorded moves. There are no totals if nothing moved, no move was prevented, and the kernel's
/// counter was not read. `names` are the names that the rest of the report gives to objects.
pub(crate) fn recorded(
    profile: &Profile,
    names: &BTreeMap<ObjectId, String>,
) -> (Vec<Migration>, Option<Moves>) {
    let meta = &profile.meta;
    if profile.migrations.is_empty() && meta.held_back.is_empty() && meta.kernel_migrations.is_none() {
        return (Vec::new(), None);
    }
    let writer = Writer { profile, names };
    let moves = nodewise_analysis::Moves::of(profile);
    let kinds = moves.kinds(profile);
    let rows = profile.migrations.iter().zip(kinds).take(MAX_ROWS);
    let rows = rows.map(|(m, kind)| writer.row(m, kind));
    (rows.collect(), Some(writer.sums(moves)))
}

impl Writer<'_> {
    fn name(&self, object: ObjectId) -> String {
        let own = || self.profile.object(object).map(|o| o.name.clone());
        let name = self.names.get(&object).cloned().or_else(own).unwrap_or_default();
        if name.is_empty() {
            "unknown".to_owned()
        } else {
            name
        }
    }

    /// Index of a page in its object.
    fn place(&self, object: ObjectId, page: PageNumber) -> u64 {
        let first = self
            .profile
            .object(object)
            .map_or(PageNumber(0), |o| o.first_page);
        page.0
            .checked_sub(first.0)
            .unwrap_or_else(|| page.virtual_number())
    }

    fn row(&self, m: &Recorded, kind: MoveKind) -> Migration {
        Migration {
            seconds: seconds(m.time_ns),
            object: self.name(m.object),
            page: self.place(m.object, m.page),
            pages: m.len,
            from: m.from,
            to: m.to,
            by: m.by.clone(),
            kind: kind.name(),
            to_count: m.to_count,
            home_count: m.home_count,
            count_threshold: m.count_threshold,
        }
    }

    fn sums(&self, moves: nodewise_analysis::Moves) -> Moves {
        let meta = &self.profile.meta;
        let mut matrices = [(); 3].map(|()| vec![vec![0; moves.nodes()]; moves.nodes()]);
        for ([from, to], pages) in &moves.pairs {
            for (matrix, pages) in matrices.iter_mut().zip(pages) {
                matrix[usize::from(*from)][usize::from(*to)] = *pages;
            }
        }
        let [matrix, kernel_matrix, others_matrix] = matrices;
        let total = moves.total;
        let held = meta.held_back.iter().cloned();
        Moves {
            simulated: None,
            pages: total.pages,
            local_fraction: None,
            local_range: None,
            ours: total.ours,
            kernel: total.kernel,
            others: total.others,
            kernel_counted: meta.kernel_migrations,
            ping_pongs: total.ping_pongs,
            multiple: total.multiple,
            incorrect: (total.judged > 0).then_some(total.incorrect),
            by: moves
                .by
                .iter()
                .map(|(by, &pages)| MovedBy {
                    by: by.clone(),
                    pages,
                })
                .collect(),
            held_back: held.map(|(cause, pages)| HeldBack { cause, pages }).collect(),
            matrix,
            kernel_matrix,
            others_matrix,
            objects: self.objects(&moves),
            over_time: self.over_time(),
            journeys: self.journeys(&moves.journeys),
            pages_by_moves: moves.pages_by_moves,
        }
    }

    fn objects(&self, moves: &nodewise_analysis::Moves) -> Vec<MovedObject> {
        let mut most: Vec<(&ObjectId, &MoveCounts)> = moves.objects.iter().collect();
        most.sort_by_key(|(_, c)| std::cmp::Reverse(c.ours + c.kernel + c.others));
        let mut left = MAX_ROWS;
        let mut journeys: BTreeMap<ObjectId, Vec<&Journey>> = BTreeMap::new();
        for journey in &moves.journeys {
            journeys.entry(journey.object).or_default().push(journey);
        }
        let one = |(id, counts): (&ObjectId, &MoveCounts)| {
            let homes = self.homes(&journeys[id], left);
            left -= homes.len();
            MovedObject {
                name: self.name(*id),
                pages: counts.pages,
                ours: counts.ours,
                kernel: counts.kernel,
                others: counts.others,
                ping_pongs: counts.ping_pongs,
                multiple: counts.multiple,
                of_pages: self.profile.object(*id).map_or(0, |o| o.pages),
                homes,
            }
        };
        most.into_iter().map(one).collect()
    }

    /// Merges neighbouring pages with equal first and last home nodes into runs; at most `most` of them.
    fn homes(&self, journeys: &[&Journey], most: usize) -> Vec<HomeChange> {
        let mut runs: Vec<HomeChange> = Vec::new();
        for j in journeys {
            let (page, first, last) = (self.place(j.object, j.page), j.first, j.last(self.profile));
            let full = runs.len() == most;
            match runs.last_mut() {
                Some(run) if run.page + run.pages == page && (run.first, run.last) == (first, last) => {
                    run.pages += j.pages;
                }
                _ if full => break,
                _ => runs.push(HomeChange {
                    page,
                    pages: j.pages,
                    first,
                    last,
                }),
            }
        }
        runs
    }

    fn over_time(&self) -> Vec<Step> {
        let migrations = &self.profile.migrations;
        let end = migrations
            .last()
            .map_or(0, |m| m.time_ns)
            .max(self.profile.meta.wall_ns);
        let width = (end / TIME_STEPS + 1).max(1);
        let mut steps: BTreeMap<(u64, u16, u16), [u64; 3]> = BTreeMap::new();
        for m in migrations {
            let pages = steps.entry((m.time_ns / width, m.from, m.to)).or_default();
            pages[m.mover() as usize] += u64::from(m.len);
        }
        let one = |((step, from, to), [ours, kernel, others]): ((u64, u16, u16), [u64; 3])| Step {
            start_seconds: seconds(step * width),
            end_seconds: seconds((step + 1) * width),
            from,
            to,
            ours,
            kernel,
            others,
        };
        steps.into_iter().map(one).collect()
    }

    /// The journeys with most moves, in descending order; of equals, those of most pages first.
    fn journeys(&self, journeys: &[Journey]) -> Vec<PageJourney> {
        let mut most: Vec<&Journey> = journeys.iter().collect();
        most.sort_by_key(|j| std::cmp::Reverse((j.moves.len(), j.pages)));
        let one = |j: &Journey| PageJourney {
            object: self.name(j.object),
            page: self.place(j.object, j.page),
            pages: j.pages,
            stays: self.stays(j),
        };
        most.into_iter().take(MAX_JOURNEYS).map(one).collect()
    }

    fn stays(&self, journey: &Journey) -> Vec<HomePeriod> {
        let first = HomePeriod {
            seconds: 0.0,
            node: journey.first,
            by: None,
            kind: None,
        };
        let at = |&i: &u32| &self.profile.migrations[i as usize];
        let moves = journey.moves.iter().map(at);
        let later = moves
            .zip(journey.kinds(self.profile))
            .map(|(m, kind)| HomePeriod {
                seconds: seconds(m.time_ns),
                node: m.to,
                by: Some(m.by.clone()),
                kind: Some(kind.name()),
            });
        std::iter::once(first).chain(later).collect()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
