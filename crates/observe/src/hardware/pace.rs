//! Decides how often to repeat a measurement, and when to stop.

use super::settings::Settings;
use nodewise_linux::clock;
use nodewise_machine::inference::Estimate;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Repeats measurements until their confidence intervals are narrow enough.
pub(super) struct Pace {
    settings: Settings,
    end: Duration,
    cut: AtomicBool,
    refused: OnceLock<io::Error>,
}

impl Pace {
    pub(super) fn new(settings: &Settings, start: Duration) -> Self {
        Self {
            settings: settings.clone(),
            end: start + settings.limit,
            cut: AtomicBool::new(false),
            refused: OnceLock::new(),
        }
    }

    /// Records that a thread could not be started: no further measurement begins.
    pub(super) fn refuse(&self, why: io::Error) {
        let _ = self.refused.set(why);
    }

    /// Why a thread could not be started, if so.
    pub(super) fn refused(&self) -> Option<&io::Error> {
        self.refused.get()
    }

    /// Duration of one sample of a bandwidth.
    pub(super) fn window(&self) -> Duration {
        self.settings.window
    }

    /// Whether something was not measured, or less precisely, because time was up.
    pub(super) fn was_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// Takes samples of several figures at a time until all are precise; `None` if time was up before the first sample,
    /// or threads could not be started.
    pub(super) fn repeat(
        &self,
        figures: usize,
        mut sample: impl FnMut(&mut [Vec<f64>]) -> io::Result<()>,
    ) -> Option<Vec<Estimate>> {
        let mut samples: Vec<Vec<f64>> = vec![Vec::new(); figures];
        while self.refused.get().is_none() && !self.enough(&samples) {
            if clock::monotonic() >= self.end {
                self.cut.store(true, Relaxed);
                break;
            }
            sample(&mut samples).unwrap_or_else(|why| self.refuse(why));
        }
        samples.iter().map(|s| Estimate::of(s)).collect()
    }

    fn enough(&self, samples: &[Vec<f64>]) -> bool {
        let count = samples.iter().map(Vec::len).min().unwrap_or(0);
        let narrow = |s: &Vec<f64>| Estimate::of(s).is_some_and(|e| e.spread() <= self.settings.precision);
        count >= *self.settings.samples.end()
            || count >= *self.settings.samples.start() && samples.iter().all(narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(limit: Duration) -> Pace {
        let settings = Settings {
            limit,
            ..Settings::quick()
        };
        Pace::new(&settings, clock::monotonic())
    }

    #[test]
    fn steady_figures_need_few_samples_and_unsteady_ones_end() {
        let hour = Duration::from_secs(3600);
        let steady = pace(hour)
            .repeat(1, |s| {
                s[0].push(5.0);
                Ok(())
            })
            .unwrap();
        assert_eq!((steady[0].samples, steady[0].median), (6, 5.0));
        let mut next = 0.0;
        let unsteady = pace(hour).repeat(2, |s| {
            next += 1.0;
            s[0].push(next);
            s[1].push(5.0);
            Ok(())
        });
        assert_eq!(unsteady.unwrap()[1].samples, 18);
    }

    #[test]
    fn when_time_is_up_nothing_begins() {
        let late = pace(Duration::ZERO);
        assert!(!late.was_cut());
        assert_eq!(
            late.repeat(1, |s| {
                s[0].push(1.0);
                Ok(())
            }),
            None
        );
        assert!(late.was_cut());
    }

    #[test]
    fn where_threads_are_refused_nothing_goes_on() {
        let pace = pace(Duration::from_secs(3600));
        let mut asked = 0;
        for _ in 0..2 {
            let refused = pace.repeat(1, |_| {
                asked += 1;
                Err(io::ErrorKind::WouldBlock.into())
            });
            assert_eq!(refused, None);
        }
        assert_eq!(asked, 1);
        assert!(pace.refused().is_some() && !pace.was_cut());
    }
}
