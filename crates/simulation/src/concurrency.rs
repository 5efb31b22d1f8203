//! Estimates how many CPUs the recorded program kept busy at a time.

use crate::tally::SliceTally;
use crate::{Calibration, Scenario};
use nodewise_profile::{Observer, Profile, RegionId, RegionKind};

/// If the recorded run used this share of the host's CPUs or more, the host limited it, not the program.
const MIN_SATURATED_SHARE: f64 = 0.75;

/// Largest number of CPUs that code outside parallel regions keeps busy at a time, in one slice; infinite if nothing
/// indicates that its threads do not run concurrently.
///
/// The threads of an OpenMP team run concurrently by construction. Other threads may run one after the other, as with a
/// `pthread_create` after each `pthread_join`: then their CPU time is at most the slice's wall time, although CPUs were
/// free. An emulator slows all threads alike, so that its own CPU time and wall time say the same. With more live threads
/// than the host has CPUs, nothing can be inferred.
pub(crate) fn limit(
    profile: &Profile,
    calibration: &Calibration,
    typical: &Scenario,
    tally: &SliceTally<'_>,
) -> f64 {
    let host = f64::from(profile.meta.host_cpus);
    let Some(slice) = profile.slices.get(tally.slice.index()) else {
        return f64::INFINITY;
    };
    let unknown = profile.meta.observer == Observer::Emulate && profile.meta.cpu_ns.is_none();
    if tally.alive as f64 > host || unknown {
        return f64::INFINITY;
    }
    let (mut free, mut team) = (0.0, 0.0);
    for phase in tally.phases {
        let work = calibration.work_ns(phase.accesses(), phase.lines, typical);
        *(if is_team(profile, phase.region) {
            &mut team
        } else {
            &mut free
        }) += work;
    }
    let wall = slice.end_ns.saturating_sub(slice.start_ns) as f64 - team / host;
    let busy = free / wall;
    if wall > 0.0 && busy < MIN_SATURATED_SHARE * host {
        busy.max(1.0)
    } else {
        f64::INFINITY
    }
}

/// Whether other processes may have kept threads waiting that would run at a time on a host of their own: then
/// [`limit`] may be too low. One such process on one CPU can delay all threads of a program that has barriers, so no
/// higher limit follows from what it used.
pub(crate) fn is_unknown(profile: &Profile) -> bool {
    let free = profile.threads.iter().filter(|t| t.openmp.is_none());
    free.count() > 1 && !profile.meta.observer.is_sampled() && !profile.meta.was_undisturbed()
}

/// Whether the threads of a region are a team, which starts together.
pub(crate) fn is_team(profile: &Profile, region: RegionId) -> bool {
    let kind = profile.regions.get(region.index()).map(|r| r.kind);
    kind == Some(RegionKind::OpenMp)
}
