//! Sums of histograms of equal page size.
//!
//! A merger keeps partial sums whose sizes halve, as a binary counter does: each cell is copied
//! at most log(slices) times, and a long recording needs no more memory than its sum.

use crate::builder::sum_by_thread;
use crate::{Entry, Histogram};
use std::cmp::Ordering;

/// A running sum of histograms of base pages.
#[derive(Default)]
pub(crate) struct Merger {
    /// Sizes descend; each is more than twice the next.
    parts: Vec<Histogram>,
}

impl Merger {
    pub(crate) fn add(&mut self, histogram: Histogram) {
        self.parts.push(histogram);
        while let [.., a, b] = self.parts.as_slice()
            && a.entries.len() <= 2 * b.entries.len()
        {
            self.merge_last();
        }
    }

    pub(crate) fn finish(mut self) -> Option<Histogram> {
        while self.parts.len() > 1 {
            self.merge_last();
        }
        self.parts.pop()
    }

    fn merge_last(&mut self) {
        if let (Some(b), Some(a)) = (self.parts.pop(), self.parts.pop()) {
            self.parts.push(merged(&a, &b));
        }
    }
}

fn merged(a: &Histogram, b: &Histogram) -> Histogram {
    let mut out = Histogram::empty(a.threads.max(b.threads), a.shift);
    let mut both: Vec<Entry> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let order = match (a.pages.get(i), b.pages.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => out.push_page(&a.page(i)),
            Ordering::Greater => out.push_page(&b.page(j)),
            Ordering::Equal => {
                both.clear();
                both.extend_from_slice(a.page(i).entries);
                both.extend_from_slice(b.page(j).entries);
                sum_by_thread(&mut both);
                out.push(a.pages[i], a.objects[i], &both);
            }
        }
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    out
}
