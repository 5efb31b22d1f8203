//! Out-W with a threshold per home, adapted to how many of its pages come back.

use super::out::{Scan, can_exceed};
use super::parameters::Parameters;
use super::{ByHome, HomePolicy, HomeView, Made, Out, Proposal, RemoteOnly, Residents, Window};
use nodewise_machine::Machine;
use nodewise_profile::PageNumber;

/// "A flexible threshold […] with the ability of being automatically modified during the run" (ARS 4, future work),
/// computed only from what a home sees itself: if a page that it sent away is on the home again, sending it was an
/// error.
///
/// If more than a twentieth of the pages sent recently came back in an interval, the threshold rises by a quarter; if
/// none did, it falls by a twentieth. This is slow decrease and fast increase, as in congestion control of networks.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    window: Window,
    start: f64,
    least: f64,
    most: f64,
}

const RAISE_FACTOR: f64 = 1.25;
const LOWER_FACTOR: f64 = 0.95;
const MAX_RETURNED_SHARE: f64 = 0.05;
/// Number of intervals after which a page that has not come back counts as sent correctly.
const RETURN_HORIZON_INTERVALS: u64 = 16;

/// A home's own history.
pub struct Home {
    threshold: f64,
    now: u64,
    /// Pages sent away, each with the interval of that, ascending by page.
    sent: Vec<(PageNumber, u64)>,
}

/// `adaptive:out-u` judges each page alone. The threshold starts at ARS's 2 and stays between `least` (1.5: pages that
/// two of three remote nodes use equally stay) and just below the largest value that can be exceeded.
pub(super) fn make(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    let alone = match p.bare() {
        None | Some("out-w") => false,
        Some("out-u") => true,
        Some(other) => return Err(p.error(format_args!("{other}: it adapts `out-w` or `out-u`"))),
    };
    let least = p.take(
        "least",
        1.5,
        |t: &f64| *t > 0.0 && t.is_finite(),
        "a positive number, such as 1.5",
    )?;
    can_exceed(p, machine, least)?;
    let most = 0.95 * machine.node_count().saturating_sub(1) as f64;
    let start = p.take(
        "threshold",
        2.0,
        |t: &f64| *t > 0.0 && t.is_finite(),
        "a positive number, such as 2",
    )?;
    let window = if alone { Window::PAGE } else { Window::of(p)? };
    let policy = Adaptive::new(window, start, least, most.max(least));
    Ok(Box::new(ByHome::new(p.name(), policy)))
}

impl Adaptive {
    /// A policy whose threshold begins at `start` and stays within bounds.
    #[must_use]
    pub fn new(window: Window, start: f64, least: f64, most: f64) -> Self {
        Self {
            window,
            start: start.clamp(least, most),
            least,
            most,
        }
    }
}

impl Home {
    /// The home's current threshold.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Looks for pages that were sent away among those on this home; returns the share that came back.
    fn returned(&mut self, residents: &mut Residents<'_>) -> Option<f64> {
        let (now, all) = (self.now, self.sent.len());
        let mut back = 0;
        self.sent.retain(|(page, when)| {
            let here = residents.seek(*page);
            // A page that is still here one interval later was held back by the controller, not sent.
            back += usize::from(here && *when < now);
            !here && when + RETURN_HORIZON_INTERVALS > now
        });
        (all > 0).then(|| back as f64 / all as f64)
    }

    fn adapt(&mut self, returned: Option<f64>, least: f64, most: f64) {
        let factor = match returned {
            Some(share) if share > MAX_RETURNED_SHARE => RAISE_FACTOR,
            Some(share) if share > 0.0 => 1.0,
            _ => LOWER_FACTOR,
        };
        self.threshold = (self.threshold * factor).clamp(least, most);
    }
}

impl HomePolicy for Adaptive {
    type Visibility = RemoteOnly;
    type Home = Home;
    type Scan = (Out<RemoteOnly>, Scan);

    fn home(&self) -> Home {
        Home {
            threshold: self.start,
            now: 0,
            sent: Vec::new(),
        }
    }

    fn reach(&self) -> usize {
        self.window.radius as usize
    }

    fn begin(&self, home: &mut Home, residents: &mut Residents<'_>) {
        home.sent.sort_unstable();
        if home.now > 0 {
            let returned = home.returned(residents);
            home.adapt(returned, self.least, self.most);
        }
        home.now += 1;
    }

    fn scan(&self, home: &Home, view: &HomeView<'_, RemoteOnly>) -> Self::Scan {
        let out = Out::new(home.threshold, self.window);
        (out, out.scan(&None, view))
    }

    #[inline]
    fn judge(&self, (out, scan): &mut Self::Scan, view: &HomeView<'_, RemoteOnly>, i: usize) -> Proposal {
        out.judge(scan, view, i)
    }

    fn sends(&self, home: &mut Home, page: PageNumber) {
        home.sent.push((page, home.now));
    }
}
