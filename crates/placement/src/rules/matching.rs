//! Matches objects against selectors, and applies a rule with its runs to a page.

use super::{Named, Rule, Selector};
use crate::ObjectPage;
use nodewise_machine::NodeId;
use nodewise_profile::{Object, ObjectKind, Profile};

impl Selector {
    /// Whether the selector matches this object of this profile. On the heap the site decides and the name is only
    /// informative; in a selector without a site, the name decides.
    #[must_use]
    pub fn matches(&self, profile: &Profile, object: &Object) -> bool {
        let site = profile
            .site(object.site)
            .map(ToString::to_string)
            .unwrap_or_default();
        self.names(object, &site)
    }

    /// As [`Selector::matches`], given the object's site in its display form.
    pub(super) fn names(&self, object: &Object, site: &str) -> bool {
        self.kind == object.kind
            && self.thread.is_none_or(|t| t == object.thread.0)
            && self.sequence.is_none_or(|s| s == object.sequence)
            && match (&self.site, &self.name) {
                (Some(wanted), _) => wanted == site,
                (None, Some(name)) if self.kind == ObjectKind::File => {
                    Named::new(name).is_some_and(|n| n.matches(&object.name))
                }
                (None, name) => name.as_ref().is_none_or(|n| *n == object.name),
            }
    }
}

impl Rule {
    /// The node of a page: its run where the object has its recorded size, else the distribution's.
    #[must_use]
    pub fn node(&self, page: ObjectPage, threads: &[NodeId]) -> Option<NodeId> {
        self.run(page).or_else(|| self.distribution.node(page, threads))
    }

    fn run(&self, page: ObjectPage) -> Option<NodeId> {
        if page.pages != self.pages {
            return None;
        }
        let after = self.runs.partition_point(|r| r.first <= page.index);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (page.index - run.first < run.len).then_some(run.node)
    }
}
