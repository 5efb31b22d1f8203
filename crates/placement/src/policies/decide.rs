//! How policies decide: page by page from counts, or array by array by a distribution.

use crate::rules::object_page;
use crate::{Context, Distribution, Mapping, PagePolicy};
use nodewise_analysis::NodeCounts;
use nodewise_machine::NodeId;
use rayon::prelude::*;

/// A mapping decided page by page from the accesses by node.
pub(super) fn by_counts(
    policy: &impl PagePolicy,
    context: &Context<'_>,
    decide: impl Fn(usize, &NodeCounts) -> NodeId + Sync,
) -> Mapping {
    let nodes = context.machine.node_count();
    let node = |counts: &mut NodeCounts, page: usize| {
        counts.load(context.histogram.page(page).entries, context.affinity);
        decide(page, counts)
    };
    let pages = (0..context.histogram.len()).into_par_iter().with_min_len(1 << 14);
    Mapping {
        policy: policy.name(),
        nodes: pages.map_init(|| NodeCounts::new(nodes), node).collect(),
    }
}

/// One distribution for every array that rules can address; stacks, pools of small allocations, files and images stay
/// where they are first touched.
pub(super) fn by_object(
    policy: &impl PagePolicy,
    context: &Context<'_>,
    distribution: &Distribution,
) -> Mapping {
    let Context {
        profile,
        histogram,
        affinity,
        ..
    } = *context;
    let threads = affinity.by_number(profile);
    let mut nodes = context.first_touch();
    let pages = histogram.pages.iter().zip(&histogram.objects);
    for (node, (page, id)) in nodes.iter_mut().zip(pages) {
        let array = profile.object(*id).filter(|o| o.kind.is_mappable());
        let chosen = array.and_then(|o| distribution.node(object_page(o, *page, histogram.shift), &threads));
        *node = chosen.unwrap_or(*node);
    }
    Mapping {
        policy: policy.name(),
        nodes,
    }
}
