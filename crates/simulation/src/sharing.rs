//! Max-min fair sharing of resources: the time that competing readers need to move their bytes.

/// The transfer that a reader requests: bytes over each resource that it crosses, ascending by resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Total bytes; fairness is between readers' byte rates.
    pub bytes: f64,
    /// `(resource, bytes)` for each resource crossed.
    pub over: Vec<(u32, f64)>,
}

/// Nanoseconds until the last reader has finished, if all start together and rates are max-min fair.
///
/// A reader's bytes cross all of its resources at proportional rates. All rates rise together until a resource is full;
/// its readers stay at that rate, and the others' rates rise on. A reader that has finished leaves its share to the
/// others. `capacity` is in bytes per nanosecond; a resource without capacity is ignored.
#[must_use]
pub fn drain_ns(demands: &[Demand], capacity: &[f64]) -> f64 {
    drained_ns(demands, &[], capacity).into_iter().fold(0.0, f64::max)
}

/// As [`drain_ns`], but the time at which each reader has finished, in the presence of `others`: these move without
/// end, each at a limited rate in bytes per nanosecond.
pub(crate) fn drained_ns(demands: &[Demand], others: &[(&Demand, f64)], capacity: &[f64]) -> Vec<f64> {
    let busy = demands.iter().enumerate().filter(|d| d.1.bytes > 0.0);
    let mut left: Vec<(f64, usize)> = busy.map(|(i, d)| (d.bytes, i)).collect();
    let mut ends = vec![0.0; demands.len()];
    let mut now = 0.0;
    while !left.is_empty() {
        let own = left.iter().map(|d| (&demands[d.1], f64::INFINITY));
        let rates = fair_rates(&own.chain(others.iter().copied()).collect::<Vec<_>>(), capacity);
        let step = left
            .iter()
            .zip(&rates)
            .map(|(d, rate)| d.0 / rate)
            .fold(f64::INFINITY, f64::min);
        if !step.is_finite() || step <= 0.0 {
            break;
        }
        now += step;
        for ((bytes, reader), rate) in left.iter_mut().zip(&rates) {
            *bytes -= rate * step;
            ends[*reader] = now;
        }
        left.retain(|d| d.0 > demands[d.1].bytes * 1e-9);
    }
    ends
}

/// Max-min fair rates by progressive filling, with a rate limit for each reader. A reader without limit on unlimited
/// resources gets an infinite rate.
fn fair_rates(readers: &[(&Demand, f64)], capacity: &[f64]) -> Vec<f64> {
    let mut rates = vec![f64::INFINITY; readers.len()];
    let mut free = capacity.to_vec();
    let mut rising = vec![true; readers.len()];
    loop {
        let mut pull = vec![0.0; capacity.len()];
        let up = || rising.iter().zip(readers).filter(|(up, _)| **up);
        for (_, (demand, _)) in up() {
            for &(resource, bytes) in &demand.over {
                pull[resource as usize] += bytes / demand.bytes;
            }
        }
        let level = |r: usize| {
            if pull[r] > 1e-12 && capacity[r] > 0.0 {
                free[r] / pull[r]
            } else {
                f64::INFINITY
            }
        };
        let wanted = up().map(|(_, (_, most))| *most).fold(f64::INFINITY, f64::min);
        let lowest = (0..capacity.len()).map(level).fold(wanted, f64::min);
        if !lowest.is_finite() {
            return rates;
        }
        let full: Vec<bool> = (0..capacity.len())
            .map(|r| level(r) <= lowest * (1.0 + 1e-9))
            .collect();
        for (i, (demand, most)) in readers.iter().enumerate() {
            let blocked = demand
                .over
                .iter()
                .any(|&(r, bytes)| bytes > 0.0 && full[r as usize]);
            if rising[i] && (blocked || *most <= lowest) {
                (rising[i], rates[i]) = (false, lowest);
                for &(resource, bytes) in &demand.over {
                    let r = resource as usize;
                    free[r] = (free[r] - lowest * bytes / demand.bytes).max(0.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(bytes: f64, over: &[u32]) -> Demand {
        Demand {
            bytes,
            over: over.iter().map(|&r| (r, bytes)).collect(),
        }
    }

    fn assert_close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn one_reader_is_bound_by_its_narrowest_resource() {
        assert_close(drain_ns(&[demand(100.0, &[0, 1])], &[10.0, 4.0]), 25.0);
    }

    #[test]
    fn equal_readers_share_one_controller_evenly() {
        assert_close(
            drain_ns(&[demand(100.0, &[0]), demand(100.0, &[0])], &[10.0]),
            20.0,
        );
    }

    #[test]
    fn a_reader_held_back_elsewhere_leaves_its_share_to_the_other() {
        // Reader 0 gets 2 over resource 1; reader 1 gets the remaining 8 of resource 0.
        let readers = [demand(20.0, &[0, 1]), demand(80.0, &[0])];
        assert_close(drain_ns(&readers, &[10.0, 2.0]), 10.0);
    }

    #[test]
    fn who_is_done_leaves_its_share() {
        // 5 + 5 until the small one has finished at 2 ns, then 10 for the remaining 90 bytes.
        assert_close(
            drain_ns(&[demand(10.0, &[0]), demand(100.0, &[0])], &[10.0]),
            11.0,
        );
    }

    #[test]
    fn others_keep_what_they_want_and_a_fair_share_at_most() {
        let own = [demand(100.0, &[0])];
        let beside = |most: f64| drained_ns(&own, &[(&demand(1.0, &[0]), most)], &[10.0])[0];
        assert_close(beside(2.0), 12.5);
        assert_close(beside(8.0), 20.0);
        let elsewhere = demand(1.0, &[1]);
        assert_close(drained_ns(&own, &[(&elsewhere, 8.0)], &[10.0, 10.0])[0], 10.0);
    }

    #[test]
    fn nothing_to_move_takes_no_time() {
        assert_close(drain_ns(&[], &[1.0]), 0.0);
        assert_close(drain_ns(&[demand(0.0, &[0])], &[1.0]), 0.0);
    }
}
