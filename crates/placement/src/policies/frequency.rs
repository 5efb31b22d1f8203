//! Profile-based placement by frequency (Majo & Gross 2.3, after Marathe et al.).

use super::FirstTouch;
use super::decide::by_counts;
use crate::{Context, Mapping, PagePolicy};
use nodewise_profile::ObjectKind;

/// Each page on the processor whose cores access it most, like [`super::Locality`], but only where the profile is
/// decisive: private pages (stacks, thread-local storage, images) are left out, and pages stay where they are if they
/// have no counts or their first-touch processor has as many accesses as the leading one.
#[derive(Clone, Copy, Debug)]
pub struct Frequency;

impl PagePolicy for Frequency {
    fn name(&self) -> String {
        "frequency".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let default = FirstTouch.place(context).nodes;
        by_counts(self, context, |page, counts| {
            let object = context.profile.object(context.histogram.objects[page]);
            let kind = object.map_or(ObjectKind::Unknown, |o| o.kind);
            let (busiest, most) = counts.dominant();
            if kind.is_private() || counts.of(default[page]) == most {
                default[page]
            } else {
                busiest
            }
        })
    }
}
