//! The step.

use super::book::{Book, UnderWay};
use super::lost::replaced;
use super::orders::{Order, emptied};
use super::{Application, Decision, FullMigration, Refused, Settings};
use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::{Cluster, NodePlacement, Place, search, weighted_bandwidth};
use std::collections::{BTreeMap, BTreeSet};

/// After so many searches of one step all that are too dear are refused at once.
const SEARCHES: usize = 4;

/// Decides once an interval which nodes applications get.
///
/// Its time is that of the caller, summed up from one step to the next: what goes backwards adds nothing.
#[derive(Clone, Debug)]
pub struct Scheduler {
    channels: Channels,
    settings: Settings,
    books: BTreeMap<u32, Book>,
    last_ns: Option<u64>,
    clock_ns: u64,
    steps: u64,
}

impl Scheduler {
    /// For this machine.
    #[must_use]
    pub fn new(machine: &Machine, settings: Settings) -> Self {
        Self {
            channels: Channels::of(machine),
            settings,
            books: BTreeMap::new(),
            last_ns: None,
            clock_ns: 0,
            steps: 0,
        }
    }

    /// What to do now, `now_ns` after any origin, with the nodes that may be used at present. What is decided
    /// is taken for done: the caller shows clusters where they have really got to in the next step.
    pub fn step(&mut self, now_ns: u64, places: &[Place], applications: &[Application]) -> Decision {
        let passed = now_ns.saturating_sub(self.last_ns.replace(now_ns).unwrap_or(now_ns));
        self.clock_ns += passed;
        self.steps += 1;
        self.books
            .retain(|id, _| applications.iter().any(|a| a.id == *id));
        for each in applications {
            let book = self
                .books
                .entry(each.id)
                .or_insert_with(|| Book::new(&self.settings));
            book.ran(each.run_ns);
        }
        let full = applications.iter().filter_map(|a| self.left_behind(a)).collect();
        let mut decision = Decision {
            full,
            ..Decision::default()
        };
        self.place(places, applications, &mut decision);
        decision
    }

    /// An application's memory was moved: so many bytes, in so long.
    pub fn moved(&mut self, application: u32, took_ns: u64, bytes: u64) {
        if let Some(book) = self.books.get_mut(&application) {
            book.spent(took_ns, bytes);
        }
    }

    /// What moving a GB of an application costs by what was measured so far, seconds.
    #[cfg(test)]
    pub fn seconds_per_gb(&self, application: u32) -> f64 {
        let book = self.books.get(&application);
        book.map_or(self.settings.seconds_per_gb, |b| b.budget.seconds_per_gb())
    }

    /// Memory that should have followed by now and has not.
    fn left_behind(&mut self, application: &Application) -> Option<FullMigration> {
        let clock = self.clock_ns;
        let book = self.books.get_mut(&application.id)?;
        let under_way = book.under_way.as_ref()?;
        if clock - under_way.since_ns < self.settings.settle_ns {
            return None;
        }
        let share = under_way.old_share(application);
        let from = book.under_way.take()?.from;
        match share.filter(|s| *s > self.settings.old_share) {
            Some(old_share) => Some(FullMigration {
                application: application.id,
                from,
                old_share,
            }),
            None => {
                book.settled();
                None
            }
        }
    }

    /// Steps 2 to 4: search, refuse what costs too much, search again with that fixed.
    fn place(&mut self, places: &[Place], applications: &[Application], decision: &mut Decision) {
        let there: Vec<NodeId> = places.iter().filter(|p| p.threads > 0).map(|p| p.node).collect();
        let step = self.steps;
        let resting = self.books.iter().filter(|(_, b)| b.rests(step));
        let mut held: BTreeSet<u32> = resting.map(|(id, _)| *id).collect();
        for searched in 1.. {
            let clusters = self.clusters(applications, places, &there, &held);
            let found = match search(&self.channels, places, &clusters, &self.settings.search) {
                Ok(found) => found,
                Err(error) => {
                    decision.trouble = Some(error.to_string());
                    return;
                }
            };
            let (placement, then) = found.least_moved();
            let mut refused = self.too_dear(applications, &clusters, &placement, &held);
            if !refused.is_empty() {
                // The dearest alone, so that others may still move; but a decision has its time.
                refused.truncate(if searched < SEARCHES { 1 } else { refused.len() });
                held.extend(refused.iter().map(|r| r.application));
                decision.refused.extend(refused);
                continue;
            }
            let of = |a: &Application| a.clusters.clone();
            let now: Vec<Cluster> = applications.iter().flat_map(of).collect();
            decision.now = weighted_bandwidth(&self.channels, &now, &NodePlacement::current(&now));
            decision.best = found.weighted;
            decision.then = then;
            // Who has lost a node moves, if no further than it has to.
            let lost = |r: &Refused| {
                applications
                    .iter()
                    .any(|a| a.id == r.application && a.lost(&there))
            };
            decision.refused.retain(|r| !lost(r));
            self.enact(applications, &placement, (&there, &held), decision);
            return;
        }
    }

    /// All clusters, application by application. Those of held applications are fixed where they are; on other nodes
    /// where theirs are gone.
    fn clusters(
        &self,
        applications: &[Application],
        places: &[Place],
        there: &[NodeId],
        held: &BTreeSet<u32>,
    ) -> Vec<Cluster> {
        let of = |application: &Application| {
            let held = held.contains(&application.id);
            let each = |cluster: &Cluster| {
                let whole = cluster.at.len() == cluster.nodes && cluster.at.iter().all(|n| there.contains(n));
                Cluster {
                    application: application.id,
                    fixed: cluster.fixed || held && whole,
                    ..cluster.clone()
                }
            };
            application.clusters.iter().map(each).collect::<Vec<_>>()
        };
        let mut clusters: Vec<Cluster> = applications.iter().flat_map(of).collect();
        for which in 0..clusters.len() {
            if clusters[which].fixed || !held.contains(&clusters[which].application) {
                continue;
            }
            if let Some(at) = replaced(&self.channels, places, &clusters, which) {
                let cluster = &mut clusters[which];
                cluster.on.retain(|n| there.contains(n));
                (cluster.at, cluster.fixed) = (at, true);
            }
        }
        clusters
    }

    /// The applications whose moves are over what they may cost, the furthest first.
    fn too_dear(
        &self,
        applications: &[Application],
        clusters: &[Cluster],
        placement: &NodePlacement,
        held: &BTreeSet<u32>,
    ) -> Vec<Refused> {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for (cluster, to) in clusters.iter().zip(&placement.places).filter(|(c, _)| !c.fixed) {
            *bytes.entry(cluster.application).or_default() += cluster.leaves(to);
        }
        let refuses =
            |a: &Application| self.books[&a.id].refuses(a.id, bytes.get(&a.id).copied().unwrap_or(0));
        let over = |r: &Refused| r.spent_ns + r.predicted_ns - r.allowed_ns;
        let not_held = applications.iter().filter(|a| !held.contains(&a.id));
        let mut refused: Vec<Refused> = not_held.filter_map(refuses).collect();
        refused.sort_by(|a, b| over(b).total_cmp(&over(a)));
        refused
    }

    /// Threads to nodes, memory after them.
    fn enact(
        &mut self,
        applications: &[Application],
        placement: &NodePlacement,
        (there, held): (&[NodeId], &BTreeSet<u32>),
        decision: &mut Decision,
    ) {
        let mut places = placement.places.iter();
        for application in applications {
            let order = |(cluster, to)| Order {
                cluster,
                to,
                stays_on: held.contains(&application.id).then_some(there),
            };
            let to = places
                .by_ref()
                .take(application.clusters.len())
                .map(Vec::as_slice);
            let orders: Vec<Order<'_>> = application.clusters.iter().zip(to).map(order).collect();
            let each = orders.iter().enumerate();
            let moves: Vec<_> = each.flat_map(|(c, o)| o.moves(application.id, c)).collect();
            if moves.iter().any(|m| m.from.is_some()) {
                let left = |o: &Order<'_>| o.cluster.leaves(&Vec::from_iter(o.then()));
                let under_way = UnderWay {
                    since_ns: self.clock_ns,
                    from: emptied(&orders, &moves),
                };
                decision.dynamic.push(application.id);
                if let Some(book) = self.books.get_mut(&application.id) {
                    let bytes = orders.iter().map(left).sum();
                    book.moved(self.steps, self.settings.rest, bytes, under_way);
                }
            }
            decision.moves.extend(moves);
        }
    }
}

impl Application {
    /// Whether a node that it is on is gone.
    fn lost(&self, there: &[NodeId]) -> bool {
        let on = self
            .clusters
            .iter()
            .filter(|c| !c.fixed)
            .flat_map(Cluster::stands_on);
        on.into_iter().any(|n| !there.contains(&n))
    }
}
