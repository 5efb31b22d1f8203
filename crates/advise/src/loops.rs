//! Which loops a libnodewise schedule can change, and which of them conflict on an object.

use nodewise_analysis::{Affinity, Conflict, Division, Usage};
use nodewise_placement::Context;
use nodewise_profile::ObjectId;

/// Whether a libnodewise schedule can replace this loop's schedule.
pub(crate) fn is_schedulable(division: &Division) -> bool {
    division.is_of_loops() && division.has_owners() && division.pattern.dimension().is_some()
}

/// The conflict of an object's loops. `None` for stacks and other unmappable memory: a thread owns its stack, even if
/// others read it.
pub(crate) fn conflict(
    context: &Context<'_>,
    in_order: &Affinity,
    usage: &Usage,
    id: ObjectId,
) -> Option<Conflict> {
    let object = context.profile.object(id).filter(|o| o.kind.is_mappable())?;
    let divisions = usage.divisions(id);
    (object.pages > 1).then(|| Conflict::of(divisions, context.affinity, in_order))?
}
