//! The scheduler: search, cost check, and the resulting actions, once per step.

use super::application_state::{ApplicationState, PendingMove};
use super::cluster_moves::{ClusterMove, vacated_nodes};
use super::replacement::replacement_nodes;
use super::{Application, Decision, FullMigration, Refused, Settings};
use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::{Cluster, NodePlacement, Place, search, weighted_bandwidth};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of searches in one step; in the last one all applications over budget are refused at once.
const SEARCHES: usize = 4;

/// Decides once an interval which nodes applications run on.
///
/// Its clock is the sum of the positive differences between the times of its steps.
#[derive(Clone, Debug)]
pub struct Scheduler {
    channels: Channels,
    settings: Settings,
    states: BTreeMap<u32, ApplicationState>,
    last_ns: Option<u64>,
    clock_ns: u64,
    steps: u64,
}

impl Scheduler {
    /// A scheduler for this machine.
    #[must_use]
    pub fn new(machine: &Machine, settings: Settings) -> Self {
        Self {
            channels: Channels::of(machine),
            settings,
            states: BTreeMap::new(),
            last_ns: None,
            clock_ns: 0,
            steps: 0,
        }
    }

    /// One step at time `now_ns` (any origin), with the nodes that may be used now. In the next step the caller passes
    /// clusters with the nodes that they have actually reached.
    pub fn step(&mut self, now_ns: u64, places: &[Place], applications: &[Application]) -> Decision {
        let passed = now_ns.saturating_sub(self.last_ns.replace(now_ns).unwrap_or(now_ns));
        self.clock_ns += passed;
        self.steps += 1;
        self.states
            .retain(|id, _| applications.iter().any(|a| a.id == *id));
        for each in applications {
            let state = self
                .states
                .entry(each.id)
                .or_insert_with(|| ApplicationState::new(&self.settings));
            state.set_run_time(each.run_ns);
        }
        let full = applications.iter().filter_map(|a| self.stragglers(a)).collect();
        let mut decision = Decision {
            full,
            ..Decision::default()
        };
        self.place(places, applications, &mut decision);
        decision
    }

    /// Records that memory of an application was moved.
    pub fn record_cost(&mut self, application: u32, took_ns: u64, bytes: u64) {
        if let Some(state) = self.states.get_mut(&application) {
            state.record_cost(took_ns, bytes);
        }
    }

    /// Cost of moving a GB of an application's memory by the measurements so far, seconds.
    #[cfg(test)]
    pub fn seconds_per_gb(&self, application: u32) -> f64 {
        let state = self.states.get(&application);
        state.map_or(self.settings.seconds_per_gb, |b| b.budget.seconds_per_gb())
    }

    /// The full migration of an application whose dynamic migration has had [`Settings::settle_ns`] and was not enough.
    fn stragglers(&mut self, application: &Application) -> Option<FullMigration> {
        let clock = self.clock_ns;
        let state = self.states.get_mut(&application.id)?;
        let pending_move = state.pending_move.as_ref()?;
        if clock - pending_move.since_ns < self.settings.settle_ns {
            return None;
        }
        let share = pending_move.old_share(application);
        let from = state.pending_move.take()?.from;
        match share.filter(|s| *s > self.settings.old_share) {
            Some(old_share) => Some(FullMigration {
                application: application.id,
                from,
                old_share,
            }),
            None => {
                state.end_migration();
                None
            }
        }
    }

    /// Steps 2 to 4: search; refuse applications over budget; search again with those fixed.
    fn place(&mut self, places: &[Place], applications: &[Application], decision: &mut Decision) {
        let there: Vec<NodeId> = places.iter().filter(|p| p.threads > 0).map(|p| p.node).collect();
        let step = self.steps;
        let backing_off = self.states.iter().filter(|(_, b)| b.backs_off(step));
        let mut held: BTreeSet<u32> = backing_off.map(|(id, _)| *id).collect();
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
            let mut refused = self.over_budget(applications, &clusters, &placement, &held);
            if !refused.is_empty() {
                // Only the one furthest over budget, so that others may still move; all of them in the last search.
                refused.truncate(if searched < SEARCHES { 1 } else { refused.len() });
                held.extend(refused.iter().map(|r| r.application));
                decision.refused.extend(refused);
                continue;
            }
            let of = |a: &Application| a.clusters.clone();
            let now: Vec<Cluster> = applications.iter().flat_map(of).collect();
            decision.now = weighted_bandwidth(&self.channels, &now, &NodePlacement::current(&now));
            decision.best = found.weighted;
            decision.searched = found.counts;
            decision.then = then;
            // An application that lost a node is not refused.
            let lost_node = |r: &Refused| {
                applications
                    .iter()
                    .any(|a| a.id == r.application && a.lost_node(&there))
            };
            decision.refused.retain(|r| !lost_node(r));
            self.apply(applications, &placement, (&there, &held), decision);
            return;
        }
    }

    /// The clusters of all applications in order. Those of held applications are fixed at their current nodes, or at
    /// replacements of vanished ones.
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
            if let Some(at) = replacement_nodes(&self.channels, places, &clusters, which) {
                let cluster = &mut clusters[which];
                cluster.on.retain(|n| there.contains(n));
                (cluster.at, cluster.fixed) = (at, true);
            }
        }
        clusters
    }

    /// The applications whose moves are over budget, by descending excess.
    fn over_budget(
        &self,
        applications: &[Application],
        clusters: &[Cluster],
        placement: &NodePlacement,
        held: &BTreeSet<u32>,
    ) -> Vec<Refused> {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for (cluster, to) in clusters.iter().zip(&placement.places).filter(|(c, _)| !c.fixed) {
            *bytes.entry(cluster.application).or_default() += cluster.bytes_leaving(to);
        }
        let refusal =
            |a: &Application| self.states[&a.id].refusal(a.id, bytes.get(&a.id).copied().unwrap_or(0));
        let over = |r: &Refused| r.spent_ns + r.predicted_ns - r.allowed_ns;
        let not_held = applications.iter().filter(|a| !held.contains(&a.id));
        let mut refused: Vec<Refused> = not_held.filter_map(refusal).collect();
        refused.sort_by(|a, b| over(b).total_cmp(&over(a)));
        refused
    }

    /// Adds the moves of a placement to the decision, and records them.
    fn apply(
        &mut self,
        applications: &[Application],
        placement: &NodePlacement,
        (there, held): (&[NodeId], &BTreeSet<u32>),
        decision: &mut Decision,
    ) {
        let mut places = placement.places.iter();
        for application in applications {
            let cluster_move = |(cluster, to)| ClusterMove {
                cluster,
                to,
                stays_on: held.contains(&application.id).then_some(there),
            };
            let to = places
                .by_ref()
                .take(application.clusters.len())
                .map(Vec::as_slice);
            let cluster_moves: Vec<ClusterMove<'_>> =
                application.clusters.iter().zip(to).map(cluster_move).collect();
            let each = cluster_moves.iter().enumerate();
            let moves: Vec<_> = each.flat_map(|(c, o)| o.moves(application.id, c)).collect();
            if moves.iter().any(|m| m.from.is_some()) {
                let left = |o: &ClusterMove<'_>| o.cluster.bytes_leaving(&Vec::from_iter(o.then()));
                let pending_move = PendingMove {
                    since_ns: self.clock_ns,
                    from: vacated_nodes(&cluster_moves, &moves),
                };
                decision.dynamic.push(application.id);
                if let Some(state) = self.states.get_mut(&application.id) {
                    let bytes = cluster_moves.iter().map(left).sum();
                    state.record_move(self.steps, self.settings.cooldown, bytes, pending_move);
                }
            }
            decision.moves.extend(moves);
        }
    }
}

impl Application {
    /// Whether one of its nodes has vanished.
    fn lost_node(&self, there: &[NodeId]) -> bool {
        let on = self
            .clusters
            .iter()
            .filter(|c| !c.fixed)
            .flat_map(Cluster::occupied_nodes);
        on.into_iter().any(|n| !there.contains(&n))
    }
}
