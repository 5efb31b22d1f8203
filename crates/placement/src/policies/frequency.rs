//! Profile-based placement by frequency (Majo & Gross 2.3, after Marathe et al.).

use super::{FirstTouch, by_counts};
use crate::{Context, Mapping, PagePolicy};
use nodewise_profile::ObjectKind;

/// Each page on the processor whose cores access it most, as [`super::Locality`] does, but only
/// where the profile decides: private pages (stacks, thread-local storage, images) are left out of
/// the optimisation, and pages without counts, or whose first-touch processor is level with the
/// leading one, stay where they are.
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
