//! The step.

use super::book::{Book, UnderWay};
use super::{Application, Decision, FullMigration, Refused, Settings, ThreadMove};
use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::{Cluster, NodePlacement, Place, search, weighted_bandwidth};
use std::collections::{BTreeMap, BTreeSet};

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
    #[must_use]
    pub fn seconds_per_gb(&self, application: u32) -> f64 {
        let book = self.books.get(&application);
        book.map_or(self.settings.cost.seconds_per_gb, |b| b.budget.seconds_per_gb())
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
        let pairs = book.under_way.take()?.pairs;
        match share.filter(|s| *s > self.settings.old_share) {
            Some(old_share) => Some(FullMigration {
                application: application.id,
                pairs,
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
        let step = self.steps;
        let mut held: BTreeSet<u32> = self
            .books
            .iter()
            .filter(|(_, b)| b.rests(step))
            .map(|(id, _)| *id)
            .collect();
        loop {
            let clusters = clusters(applications, places, &held);
            let found = match search(&self.channels, places, &clusters, &self.settings.search) {
                Ok(found) => found,
                Err(error) => {
                    decision.trouble = Some(error.to_string());
                    return;
                }
            };
            let (placement, then) = found.least_moved();
            if let Some(refused) = self.dearest(applications, &clusters, &placement, &held) {
                held.insert(refused.application);
                decision.refused.push(refused);
                continue;
            }
            decision.now = weighted_bandwidth(&self.channels, &clusters, &NodePlacement::current(&clusters));
            decision.best = found.weighted;
            decision.then = then;
            self.enact(applications, &placement, decision);
            return;
        }
    }

    /// The application whose move is furthest over what it may cost.
    fn dearest(
        &self,
        applications: &[Application],
        clusters: &[Cluster],
        placement: &NodePlacement,
        held: &BTreeSet<u32>,
    ) -> Option<Refused> {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for (cluster, to) in clusters.iter().zip(&placement.places).filter(|(c, _)| !c.fixed) {
            *bytes.entry(cluster.application).or_default() += cluster.leaves(to);
        }
        let refuses =
            |a: &Application| self.books[&a.id].refuses(a.id, bytes.get(&a.id).copied().unwrap_or(0));
        let over = |r: &Refused| r.spent_ns + r.predicted_ns - r.allowed_ns;
        let not_held = applications.iter().filter(|a| !held.contains(&a.id));
        not_held
            .filter_map(refuses)
            .max_by(|a, b| over(a).total_cmp(&over(b)))
    }

    /// Threads to nodes, memory after them.
    fn enact(&mut self, applications: &[Application], placement: &NodePlacement, decision: &mut Decision) {
        let mut places = placement.places.iter();
        for application in applications {
            let to: Vec<&Vec<NodeId>> = places.by_ref().take(application.clusters.len()).collect();
            let before = decision.moves.len();
            let both = || application.clusters.iter().zip(&to);
            for (index, (cluster, to)) in both().enumerate() {
                decision
                    .moves
                    .extend(thread_moves(application.id, index, cluster, to));
            }
            let moves = &decision.moves[before..];
            let pairs: BTreeSet<(NodeId, NodeId)> =
                moves.iter().filter_map(|m| Some((m.from?, m.to))).collect();
            if pairs.is_empty() {
                continue;
            }
            let bytes = both().map(|(cluster, to)| cluster.leaves(to)).sum();
            let now: BTreeSet<NodeId> = to.iter().flat_map(|t| t.iter().copied()).collect();
            let was = application.clusters.iter().flat_map(|c| c.at.iter().copied());
            let under_way = UnderWay {
                since_ns: self.clock_ns,
                old: was.filter(|n| !now.contains(n)).collect(),
                pairs: pairs.into_iter().collect(),
            };
            decision.dynamic.push(application.id);
            if let Some(book) = self.books.get_mut(&application.id) {
                book.moved(self.steps, self.settings.rest, bytes, under_way);
            }
        }
    }
}

/// All clusters, application by application. Those of held applications stay, unless they have no place: they
/// are nowhere yet, or a node of theirs is gone.
fn clusters(applications: &[Application], places: &[Place], held: &BTreeSet<u32>) -> Vec<Cluster> {
    let there = |n: &NodeId| places.iter().any(|p| p.node == *n && p.threads > 0);
    let of = |application: &Application| {
        let held = held.contains(&application.id);
        let each = |cluster: &Cluster| {
            let whole = cluster.at.len() == cluster.nodes && cluster.at.iter().all(there);
            Cluster {
                application: application.id,
                fixed: cluster.fixed || held && whole,
                ..cluster.clone()
            }
        };
        application.clusters.iter().map(each).collect::<Vec<_>>()
    };
    applications.iter().flat_map(of).collect()
}

/// What changes node: the threads of each virtual node.
fn thread_moves(application: u32, index: usize, cluster: &Cluster, to: &[NodeId]) -> Vec<ThreadMove> {
    let of = |(virtual_node, to): (usize, &NodeId)| ThreadMove {
        application,
        cluster: index,
        threads: cluster.threads[cluster.aboard(virtual_node)].to_vec(),
        from: cluster.at.get(virtual_node).copied(),
        to: *to,
    };
    let all = to.iter().enumerate().map(of);
    all.filter(|m| !cluster.fixed && m.from != Some(m.to)).collect()
}
