//! The part of the report on moved pages.

use nodewise_analysis::{Journey, MoveCounts};
use nodewise_profile::{Meta, Migration as Recorded, MoveKind, ObjectId, PageNumber, Profile};
use nodewise_simulation::{Moved, Prediction};
use serde::Serialize;
use std::collections::BTreeMap;

/// Rows, journeys and runs of homes that a report holds at most; the table `migrations` has all.
const ROWS: usize = 10_000;
/// Steps that time is cut into.
const STEPS: u64 = 60;
/// Runs of pages whose whole journey is told.
const JOURNEYS: usize = 24;

/// One recorded move of a run of pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Migration {
    /// Since the recording began.
    pub seconds: f64,
    /// Name of the object.
    pub object: String,
    /// First page, counted from the object's first.
    pub page: u64,
    /// Pages that moved together, of 4 KiB.
    pub pages: u32,
    /// The node they left.
    pub from: u16,
    /// The node they went to.
    pub to: u16,
    /// A policy as written, `kernel` or `unknown`.
    pub by: String,
    /// What it is to the first page: `first`, `ping-pong` or `multiple`.
    pub kind: &'static str,
    /// Accesses or samples from the new node.
    pub to_count: f64,
    /// Those from the old node; `null` when the policy could not see them.
    pub home_count: Option<f64>,
    /// What `to_count` had to exceed.
    pub against: f64,
}

/// What all moves amount to. Pages are of 4 KiB and count once for each move, but for `pages`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moves {
    /// The policy that would have made them, as simulated; `null` where they were recorded.
    pub simulated: Option<String>,
    /// Pages that moved at all.
    pub pages: u64,
    /// The share of samples that were local with pages where moves had them; `null` where it is not known which nodes
    /// threads were on, or nothing was moved.
    pub local_fraction: Option<f64>,
    /// Where accesses are samples: least and largest share of the accesses that was local; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Moved by policies of ours.
    pub ours: u64,
    /// Moved by the kernel's own balancing, as far as it was seen page by page.
    pub kernel: u64,
    /// Found moved, and neither by us nor, by its own count, by the kernel.
    pub others: u64,
    /// The kernel's own count; `null` if it was not read.
    pub kernel_counted: Option<u64>,
    /// Moves back to the node just left.
    pub ping_pongs: u64,
    /// Second and later moves to yet another node.
    pub multiple: u64,
    /// Moves from the node that used the page most; `null` when no policy saw the home's own accesses.
    pub incorrect: Option<u64>,
    /// Moves of pages, by who moved them.
    pub by: Vec<MovedBy>,
    /// What policies wanted to move but were kept from, by cause.
    pub held_back: Vec<HeldBack>,
    /// Pages moved by our policies, `[from][to]`.
    pub matrix: Vec<Vec<u64>>,
    /// Pages moved by the kernel, `[from][to]`.
    pub kernel_matrix: Vec<Vec<u64>>,
    /// Pages moved by others, `[from][to]`.
    pub others_matrix: Vec<Vec<u64>>,
    /// Pages by number of moves: entry `i` counts those that moved `i` times.
    pub pages_by_moves: Vec<u64>,
    /// Objects with moved pages, the most moved first.
    pub objects: Vec<MovedObject>,
    /// Moves in steps of time, by pair of nodes; steps without moves are left out.
    pub over_time: Vec<Step>,
    /// Where the most-moved pages lived through the run.
    pub journeys: Vec<PageJourney>,
}

/// Who moved how much.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedBy {
    /// A policy as written, or `kernel`.
    pub by: String,
    /// Number of pages moved.
    pub pages: u64,
}

/// Moves that did not happen.
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
    /// Pages that moved at all.
    pub pages: u64,
    /// Moved by policies of ours.
    pub ours: u64,
    /// Moved by the kernel.
    pub kernel: u64,
    /// Pages moved by others than our policies and the kernel.
    pub others: u64,
    /// Moves back to the node just left.
    pub ping_pongs: u64,
    /// Second and later moves to yet another node.
    pub multiple: u64,
    /// Number of all its pages.
    pub of_pages: u64,
    /// Where its moved pages lived first and last.
    pub homes: Vec<Homes>,
}

/// A run of pages with one first and one last home.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Homes {
    /// First page, counted from the object's first.
    pub page: u64,
    /// Length of the run in pages.
    pub pages: u64,
    /// The node before the first move.
    pub first: u16,
    /// The node after the last.
    pub last: u16,
}

/// Moves between two nodes in a step of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Since the recording began.
    pub start_seconds: f64,
    /// Since the recording began.
    pub end_seconds: f64,
    /// The node that pages left.
    pub from: u16,
    /// The node gone to.
    pub to: u16,
    /// Pages moved by our policies.
    pub ours: u64,
    /// Pages moved by the kernel.
    pub kernel: u64,
    /// Pages moved by others.
    pub others: u64,
}

/// Pages that always moved together, and where they lived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageJourney {
    /// Name of the object.
    pub object: String,
    /// First page, counted from the object's first.
    pub page: u64,
    /// Length of the run in pages.
    pub pages: u64,
    /// The nodes that they were on, in order of time.
    pub stays: Vec<Stay>,
}

/// A home, until the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stay {
    /// When it began, since the recording began; 0 for the first.
    pub seconds: f64,
    /// The node that they were on.
    pub node: u16,
    /// Who brought the pages there; `null` for the first.
    pub by: Option<String>,
    /// What that move was to them: `first`, `ping-pong` or `multiple`; `null` for the first stay.
    pub kind: Option<&'static str>,
}

/// What names and counts a report's rows are made with.
struct Writer<'a> {
    profile: &'a Profile,
    names: &'a BTreeMap<ObjectId, String>,
}

/// The same for moves that a policy would have made: as if the profile had them. `names` as in [`recorded`].
pub(crate) fn simulated(
    prediction: &Prediction,
    page_size: u64,
    profile: &Profile,
    names: &BTreeMap<ObjectId, String>,
) -> (Vec<Migration>, Option<Moves>) {
    let nothing = Moved::default();
    let moved = prediction.moved.as_ref().unwrap_or(&nothing);
    // Proposals are for pages of the metrics' size.
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

/// The rows and what they amount to; no sums where nothing moved, was held back or was asked about.
/// `names` are what objects are called elsewhere in the report.
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
    let rows = profile.migrations.iter().zip(kinds).take(ROWS);
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

    /// A page's place in its object.
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
            against: m.against,
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
        let mut left = ROWS;
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

    /// Runs of equal first and last homes, at most this many.
    fn homes(&self, journeys: &[&Journey], most: usize) -> Vec<Homes> {
        let mut runs: Vec<Homes> = Vec::new();
        for j in journeys {
            let (page, first, last) = (self.place(j.object, j.page), j.first, j.last(self.profile));
            let full = runs.len() == most;
            match runs.last_mut() {
                Some(run) if run.page + run.pages == page && (run.first, run.last) == (first, last) => {
                    run.pages += j.pages;
                }
                _ if full => break,
                _ => runs.push(Homes {
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
        let width = (end / STEPS + 1).max(1);
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

    /// The most restless first; of equals, the largest.
    fn journeys(&self, journeys: &[Journey]) -> Vec<PageJourney> {
        let mut most: Vec<&Journey> = journeys.iter().collect();
        most.sort_by_key(|j| std::cmp::Reverse((j.moves.len(), j.pages)));
        let one = |j: &Journey| PageJourney {
            object: self.name(j.object),
            page: self.place(j.object, j.page),
            pages: j.pages,
            stays: self.stays(j),
        };
        most.into_iter().take(JOURNEYS).map(one).collect()
    }

    fn stays(&self, journey: &Journey) -> Vec<Stay> {
        let first = Stay {
            seconds: 0.0,
            node: journey.first,
            by: None,
            kind: None,
        };
        let at = |&i: &u32| &self.profile.migrations[i as usize];
        let moves = journey.moves.iter().map(at);
        let later = moves.zip(journey.kinds(self.profile)).map(|(m, kind)| Stay {
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
