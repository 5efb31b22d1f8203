//! What objects are called.

use nodewise_profile::{ObjectId, Profile};
use std::collections::BTreeMap;

/// The names of objects, parallel to `objects`: equal names are numbered in their order, `table #2`.
#[must_use]
pub fn object_names(profile: &Profile, objects: &[ObjectId]) -> Vec<String> {
    let name = |id: &ObjectId| match profile.object(*id) {
        Some(object) if object.name.is_empty() => object.kind.name(),
        Some(object) => object.name.as_str(),
        None => "",
    };
    let mut seen: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for id in objects {
        seen.entry(name(id)).or_default().0 += 1;
    }
    let numbered = |id: &ObjectId| {
        let name = name(id);
        let (all, before) = seen.get_mut(name).expect("counted above");
        *before += 1;
        match *all {
            1 => name.to_owned(),
            _ => format!("{name} #{before}"),
        }
    };
    objects.iter().map(numbered).collect()
}
