//! Locality for exclusive pages, interleave for the others (Diener, equation 8).

use super::decide::by_counts;
use super::interleave::interleaved;
use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, PolicyError};

/// maxnode(p) where E_Page > minExcl, page number mod N otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    /// minExcl; the paper's best is 0.9.
    pub min_exclusivity: f64,
}

impl Default for Mixed {
    fn default() -> Self {
        Self { min_exclusivity: 0.9 }
    }
}

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    match request.parameter {
        None => Ok(Box::new(Mixed::default())),
        Some(text) => Ok(Box::new(Mixed {
            min_exclusivity: threshold(text)?,
        })),
    }
}

/// One policy per percent, including both ends: the sweep of Diener III.5.
pub(super) fn sweep(from: &str, to: &str) -> Result<Vec<Policy>, PolicyError> {
    let (from, to) = (threshold(from)?, threshold(to)?);
    if from > to {
        return Err(PolicyError(format!(
            "mixed:{from}..{to}: the range descends; write mixed:{to}..{from}"
        )));
    }
    let percents = (from * 100.0).round() as u32..=(to * 100.0).round() as u32;
    Ok(percents
        .map(|p| {
            Box::new(Mixed {
                min_exclusivity: f64::from(p) / 100.0,
            }) as Policy
        })
        .collect())
}

fn threshold(text: &str) -> Result<f64, PolicyError> {
    text.parse()
        .ok()
        .filter(|t| (0.0..=1.0).contains(t))
        .ok_or_else(|| {
            PolicyError(format!(
                "mixed:{text}: the least exclusivity is a number from 0 to 1, such as 0.9"
            ))
        })
}

impl PagePolicy for Mixed {
    fn name(&self) -> String {
        format!("mixed:{}", self.min_exclusivity)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (histogram, nodes) = (context.histogram, context.machine.node_count());
        by_counts(self, context, |page, counts| {
            if counts.exclusivity() > self.min_exclusivity {
                counts.dominant().0
            } else {
                interleaved(histogram.pages[page], histogram.shift, nodes)
            }
        })
    }
}
