//! Statistics of the page moves of a recording.
//!
//! Moves are counted page by page, as Tao et al. count them (Table 1): [`MoveKind`] classifies a move by the page's
//! earlier moves; an *incorrect* move takes a page from the node that used it most.

use nodewise_profile::{Migration, MoveKind, Mover, ObjectId, PageNumber, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of page moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveCounts {
    /// Pages moved by policies of ours; a page counts once for each of its moves.
    pub ours: u64,
    /// Pages moved by the kernel's own balancing, counted in the same way.
    pub kernel: u64,
    /// Pages found moved that, by their own counts, neither we nor the kernel moved.
    pub others: u64,
    /// Number of distinct pages that moved.
    pub pages: u64,
    /// Moves back to the node just left.
    pub ping_pongs: u64,
    /// Second and later moves that do not go back to the node just left.
    pub multiple: u64,
    /// Moves of ours from the node that used the page most, as far as the policy recorded both counts.
    pub incorrect: u64,
    /// Moves of ours whose record has both counts.
    pub judged: u64,
}

impl MoveCounts {
    fn absorb(&mut self, other: &Self) {
        self.ours += other.ours;
        self.kernel += other.kernel;
        self.others += other.others;
        self.pages += other.pages;
        self.ping_pongs += other.ping_pongs;
        self.multiple += other.multiple;
        self.incorrect += other.incorrect;
        self.judged += other.judged;
    }
}

/// The homes over time of neighbouring pages that have the same moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    /// Number of the first base page.
    pub page: PageNumber,
    /// Length of the run in base pages.
    pub pages: u64,
    /// The object that the pages belong to.
    pub object: ObjectId,
    /// Their node before the first move.
    pub first: u16,
    /// Their moves, as indices into [`Profile::migrations`].
    pub moves: Vec<u32>,
}

impl Journey {
    /// Time (ns) and target node of each move.
    pub fn stays<'a>(&'a self, profile: &'a Profile) -> impl DoubleEndedIterator<Item = (u64, u16)> + 'a {
        let at = |&i: &u32| &profile.migrations[i as usize];
        self.moves.iter().map(at).map(|m| (m.time_ns, m.to))
    }

    /// The kind of each move, in the same order.
    pub fn kinds<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = MoveKind> + 'a {
        let at = |&i: &u32| &profile.migrations[i as usize];
        let mut left = None;
        let kind = move |m: &Migration| MoveKind::of(left.replace(m.from), m.to);
        self.moves.iter().map(at).map(kind)
    }

    /// Their node after the last move.
    #[must_use]
    pub fn last(&self, profile: &Profile) -> u16 {
        self.stays(profile)
            .next_back()
            .map_or(self.first, |(_, node)| node)
    }

    fn count(&self, profile: &Profile) -> MoveCounts {
        let pages = self.pages;
        let mut counts = MoveCounts {
            pages,
            ..MoveCounts::default()
        };
        let mut before: Option<&Migration> = None;
        for m in self.moves.iter().map(|&i| &profile.migrations[i as usize]) {
            match m.mover() {
                Mover::Kernel => counts.kernel += pages,
                Mover::Other => counts.others += pages,
                Mover::Policy => {
                    counts.ours += pages;
                    counts.judged += pages * u64::from(m.home_count.is_some());
                    counts.incorrect += pages * u64::from(m.home_count.is_some_and(|home| home > m.to_count));
                }
            }
            match MoveKind::of(before.map(|b| b.from), m.to) {
                MoveKind::First => {}
                MoveKind::PingPong => counts.ping_pongs += pages,
                MoveKind::Multiple => counts.multiple += pages,
            }
            before = Some(m);
        }
        counts
    }
}

/// All moves of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Sums over all pages.
    pub total: MoveCounts,
    /// Sums over the pages of each object that has moved pages.
    pub objects: BTreeMap<ObjectId, MoveCounts>,
    /// Pages moved by who moved them.
    pub by: BTreeMap<String, u64>,
    /// Pages moved by our policies, by the kernel, and by others: `[from, to]` to all three.
    pub pairs: BTreeMap<[u16; 2], [u64; 3]>,
    /// Pages by number of moves: entry `i` counts those that moved `i` times; entry 0 is 0.
    pub pages_by_moves: Vec<u64>,
    /// The homes of all moved pages over time, ascending by page.
    pub journeys: Vec<Journey>,
}

impl Moves {
    /// Counts the moves of a recording. Takes time linear in the number of moves, except for a sort.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut moves = Self {
            journeys: journeys(&profile.migrations),
            ..Self::default()
        };
        for m in &profile.migrations {
            let pair = moves.pairs.entry([m.from, m.to]).or_default();
            pair[m.mover() as usize] += u64::from(m.len);
            *moves.by.entry(m.by.clone()).or_default() += u64::from(m.len);
        }
        for journey in &moves.journeys {
            let counts = journey.count(profile);
            moves.objects.entry(journey.object).or_default().absorb(&counts);
            let times = journey.moves.len();
            if moves.pages_by_moves.len() <= times {
                moves.pages_by_moves.resize(times + 1, 0);
            }
            moves.pages_by_moves[times] += journey.pages;
        }
        moves.objects.values().for_each(|o| moves.total.absorb(o));
        moves
    }

    /// The kind of each of the profile's moves, for the first page of the move.
    #[must_use]
    pub fn kinds(&self, profile: &Profile) -> Vec<MoveKind> {
        let mut kinds = vec![MoveKind::First; profile.migrations.len()];
        for journey in &self.journeys {
            for (i, kind) in journey.moves.iter().zip(journey.kinds(profile)) {
                if profile.migrations[*i as usize].page == journey.page {
                    kinds[*i as usize] = kind;
                }
            }
        }
        kinds
    }

    /// One more than the largest node number in the moves.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.pairs
            .keys()
            .flatten()
            .max()
            .map_or(0, |n| usize::from(*n) + 1)
    }
}

/// The journeys of all moved pages; neighbouring pages of one object that have the same moves form one journey.
///
/// Sweeps over the ends of moves, so that the cost depends on their number, not on the number of pages that they cover.
fn journeys(migrations: &[Migration]) -> Vec<Journey> {
    let ends = |(i, m): (u32, &Migration)| [(m.page, i), (m.page.offset(m.len.into()), i)];
    let mut ends: Vec<(PageNumber, u32)> = (0u32..).zip(migrations).flat_map(ends).collect();
    ends.sort_unstable();
    let mut journeys: Vec<Journey> = Vec::new();
    let mut active = BTreeSet::new();
    let mut from = PageNumber(0);
    for ends in ends.chunk_by(|a, b| a.0 == b.0) {
        let to = ends[0].0;
        let moves = || active.iter().copied();
        match (journeys.last_mut(), active.first()) {
            (_, None) => {}
            (Some(last), _)
                if last.page.offset(last.pages) == from && moves().eq(last.moves.iter().copied()) =>
            {
                last.pages += to.0 - from.0;
            }
            (_, Some(&first)) => journeys.push(Journey {
                page: from,
                pages: to.0 - from.0,
                object: migrations[first as usize].object,
                first: migrations[first as usize].from,
                moves: moves().collect(),
            }),
        }
        for (_, i) in ends {
            // The first end of a move begins it, the second one ends it.
            if !active.remove(i) {
                active.insert(*i);
            }
        }
        from = to;
    }
    journeys
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moved(time_ns: u64, page: u64, len: u32, from: u16, to: u16) -> Migration {
        Migration {
            time_ns,
            page: PageNumber(page),
            len,
            from,
            to,
            by: "out-w".into(),
            ..Migration::default()
        }
    }

    fn of(migrations: Vec<Migration>) -> (Profile, Moves) {
        let profile = Profile {
            migrations,
            ..Profile::default()
        };
        let moves = Moves::of(&profile);
        (profile, moves)
    }

    #[test]
    fn a_page_that_comes_back_is_a_ping_pong_and_one_that_goes_on_is_multiple() {
        let (profile, moves) = of(vec![
            moved(1, 10, 4, 0, 1),
            moved(2, 12, 1, 1, 0),
            moved(3, 13, 1, 1, 2),
            moved(4, 12, 1, 0, 1),
        ]);
        let total = moves.total;
        assert_eq!((total.ours, total.pages), (7, 4));
        assert_eq!((total.ping_pongs, total.multiple), (2, 1));
        assert_eq!(moves.pages_by_moves, [0, 2, 1, 1]);
        let runs: Vec<_> = moves
            .journeys
            .iter()
            .map(|j| (j.page.0, j.pages, j.last(&profile)))
            .collect();
        assert_eq!(runs, [(10, 2, 1), (12, 1, 1), (13, 1, 2)]);
        assert_eq!(moves.nodes(), 3);
        let kinds = moves.kinds(&profile);
        use MoveKind::{First, Multiple, PingPong};
        assert_eq!(kinds, [First, PingPong, Multiple, PingPong]);
    }

    #[test]
    fn the_kernels_moves_are_apart_and_judged_by_nobody() {
        let kernel = Migration {
            by: Migration::KERNEL.into(),
            ..moved(5, 0, 3, 0, 1)
        };
        let wrong = Migration {
            to_count: 2.0,
            home_count: Some(5.0),
            ..moved(6, 8, 2, 0, 1)
        };
        let stranger = Migration {
            by: Migration::UNKNOWN.into(),
            ..moved(7, 20, 4, 0, 1)
        };
        let (_, moves) = of(vec![kernel, wrong, stranger]);
        let total = moves.total;
        assert_eq!((total.ours, total.kernel, total.others), (2, 3, 4));
        assert_eq!((moves.total.incorrect, moves.total.judged), (2, 2));
        assert_eq!(moves.pairs[&[0, 1]], [2, 3, 4]);
        assert_eq!(
            moves.by,
            BTreeMap::from([("kernel".into(), 3), ("out-w".into(), 2), ("unknown".into(), 4)])
        );
    }

    #[test]
    fn long_moves_take_no_more_than_short_ones() {
        let most = u32::MAX;
        let (_, moves) = of(vec![moved(1, 0, most, 0, 1), moved(2, 1 << 31, most, 1, 0)]);
        let half = 1u64 << 31;
        let runs: Vec<_> = moves
            .journeys
            .iter()
            .map(|j| (j.page.0, j.pages, j.moves.len()))
            .collect();
        let both = u64::from(most) - half;
        assert_eq!(runs, [(0, half, 1), (half, both, 2), (half + both, half, 1)]);
        assert_eq!(
            (moves.total.ping_pongs, moves.total.pages),
            (both, half + u64::from(most))
        );
    }

    proptest! {
        /// Compares with a count that goes page by page.
        #[test]
        fn journeys_are_those_of_each_page(moves in proptest::collection::vec((0u64..30, 1u32..9, 0u16..4, 1u16..4), 0..40)) {
            let migrations: Vec<_> = (0u64..).zip(&moves).map(|(t, &(page, len, from, by))| moved(t, page, len, from, (from + by) % 4)).collect();
            let on = |page: u64| (0u32..).zip(&migrations).filter(move |(_, m)| (m.page.0..m.page.0 + u64::from(m.len)).contains(&page)).map(|(i, _)| i);
            let journeys = journeys(&migrations);
            for page in 0..50 {
                let of = journeys.iter().find(|j| (j.page.0..j.page.0 + j.pages).contains(&page));
                prop_assert_eq!(of.map_or(Vec::new(), |j| j.moves.clone()), on(page).collect::<Vec<_>>());
            }
            prop_assert!(journeys.windows(2).all(|w| w[0].page.offset(w[0].pages) < w[1].page || w[0].moves != w[1].moves));
        }

        #[test]
        fn every_moved_page_is_counted_once_each_time(moves in proptest::collection::vec((0u64..30, 1u32..9, 0u16..4, 1u16..4), 0..40)) {
            let migrations: Vec<_> = (0u64..).zip(&moves).map(|(t, &(page, len, from, by))| moved(t, page, len, from, (from + by) % 4)).collect();
            let pages: u64 = migrations.iter().map(|m| u64::from(m.len)).sum();
            let (_, moves) = of(migrations);
            prop_assert_eq!(moves.total.ours, pages);
            prop_assert_eq!(moves.pairs.values().map(|p| p[0]).sum::<u64>(), pages);
            let by_moves: u64 = (0..).zip(&moves.pages_by_moves).map(|(i, n)| i * n).sum();
            prop_assert_eq!(by_moves, pages);
            prop_assert_eq!(moves.total.ping_pongs + moves.total.multiple + moves.total.pages, pages);
            prop_assert!(moves.journeys.windows(2).all(|w| w[0].page.offset(w[0].pages) <= w[1].page));
        }
    }
}
