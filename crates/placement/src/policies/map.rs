//! Applies the rules of a map file to a profile.

use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, Placement, PolicyError, apply};
use nodewise_analysis::figures::percent;

/// The mapping that `run --policy map:FILE` would produce for the recorded program.
#[derive(Clone, Debug)]
pub struct Map {
    path: String,
    placement: Placement,
}

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let path = request
        .parameter
        .ok_or_else(|| PolicyError("policy `map` needs a file: write map:FILE".into()))?;
    let text = request.outside.read(path).map_err(PolicyError)?;
    let placement = Placement::read(&text).map_err(|e| PolicyError(format!("{path}: {e}")))?;
    Ok(Box::new(Map {
        path: path.to_owned(),
        placement,
    }))
}

impl PagePolicy for Map {
    fn name(&self) -> String {
        format!("map:{}", self.path)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (mapping, _) = apply(&self.placement, context);
        Mapping {
            policy: self.name(),
            ..mapping
        }
    }

    /// Notes on how much of the map applied, and whether it is for another program or machine.
    fn notes(&self, context: &Context<'_>) -> Vec<String> {
        let Placement { nodes, rules, .. } = &self.placement;
        let (_, applied) = apply(&self.placement, context);
        let share = percent(applied.matched_pages as f64 / applied.pages.max(1) as f64);
        let mut note = format!(
            "{}: {} of {} rules match, {share} of pages",
            self.path,
            rules.len() - applied.unmatched_rules.len(),
            rules.len(),
        );
        let recorded = context.profile.program();
        if recorded != self.placement.program {
            note += &format!(
                "; it is of `{}`, the profile of `{recorded}`",
                self.placement.program
            );
        }
        if applied.folded {
            note += &format!("; folded from {nodes} to {} nodes", context.machine.node_count());
        }
        vec![note]
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{Recorded, machine};
    use crate::policies::Outside;
    use crate::{PagePolicy, page_policy, recognise};

    struct Text(String);

    impl Outside for Text {
        fn read(&self, _: &str) -> Result<String, String> {
            Ok(self.0.clone())
        }

        fn plugin(&self, path: &str) -> Result<Box<dyn PagePolicy>, String> {
            Err(path.into())
        }
    }

    #[test]
    fn a_map_says_how_much_of_it_finds_its_place() {
        let own = |page: u64, thread: u32| u64::from(page / 8 == u64::from(thread));
        let recorded = |nodes| Recorded::new(machine(nodes, 1), 4, &[(32, &own), (32, &own)]);
        let large = recorded(4);
        let locality = page_policy("locality", &large.machine, &Text(String::new())).unwrap();
        let map = recognise(&large.context(), &locality.place(&large.context())).to_toml();

        let mut other = recorded(2);
        other.profile.meta.command = vec!["./other".into(), "input".into()];
        other.profile.objects[2].site = nodewise_profile::SiteId(0);
        let policy = page_policy("map:large.map", &other.machine, &Text(map)).unwrap();
        assert_eq!(
            policy.notes(&other.context()),
            [
                "large.map: 1 of 2 rules match, 50.0 % of pages; it is of ``, the profile of `other`; \
              folded from 4 to 2 nodes"
            ]
        );
        assert!(locality.notes(&large.context()).is_empty());
    }
}
