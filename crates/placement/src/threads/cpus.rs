//! Thread policies that need no profile, by name.

use super::names::{heads, unknown};
use super::node_cpus::{NodeCpus, numbered};
use super::{file, hwloc, likwid};
use crate::PolicyError;
use crate::policies::Outside;
use nodewise_machine::CpuId;

/// The CPU of thread 0, 1, …; with more threads than CPUs, starts again at the first. `None`: the policy needs a
/// profile.
///
/// # Errors
/// One line: what is wrong with the expression or file, or which policies there are.
pub(super) fn by_name(
    text: &str,
    cpus: &NodeCpus,
    outside: &dyn Outside,
) -> Result<Option<Vec<CpuId>>, PolicyError> {
    let at = |e: PolicyError| PolicyError(format!("{text}: {e}"));
    let order = match text.split_once(':').unwrap_or((text, "")) {
        ("compact", "") => cpus.compact(),
        ("scatter", "") => cpus.scatter(),
        ("identity", "") => cpus.identity(),
        ("sharing-aware" | "asym" | "recorded", "") => return Ok(None),
        ("cpus", list) => numbered(list, cpus).map_err(at)?,
        ("likwid", expression) => likwid::order(expression, cpus).map_err(at)?,
        ("hwloc", expression) => hwloc::order(expression, cpus).map_err(at)?,
        ("file", path) => {
            let content = outside.read(path).map_err(PolicyError)?;
            file::cpus(&content, cpus).map_err(|e| PolicyError(format!("{path}: {e}")))?
        }
        (name, _) => {
            let hint = nodewise_input::resolve(name, heads()).err().unwrap_or_default();
            return Err(unknown(text, &hint));
        }
    };
    Ok(Some(order))
}

/// The CPU of thread 0, 1, … under a policy that needs no profile; with more threads than CPUs, starts again at the
/// first.
///
/// # Errors
/// One line: what is wrong with the expression or file, which policies there are, or that this one needs a
/// profile, and how to use it then.
pub fn thread_order(text: &str, cpus: &NodeCpus, outside: &dyn Outside) -> Result<Vec<CpuId>, PolicyError> {
    by_name(text, cpus, outside)?.ok_or_else(|| {
        PolicyError(format!(
            "`{text}` goes by what threads share, so it needs a profile: \
             `nodewise map --affinity {text} --policy P -o FILE`, then `nodewise run --policy map:FILE`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::node_cpus::tests::{cpus, numbers};
    use super::*;
    use crate::policies::Nothing;

    #[test]
    fn what_goes_by_a_profile_says_how_to_use_it() {
        for policy in ["asym", "sharing-aware"] {
            let error = thread_order(policy, &cpus(), &Nothing).unwrap_err().to_string();
            assert!(
                error.contains(&format!("nodewise map --affinity {policy}")),
                "{error}"
            );
        }
    }

    #[test]
    fn lists_are_the_kernels_numbers_in_their_order() {
        let order = |text| numbers(thread_order(text, &cpus(), &Nothing));
        assert_eq!(order("cpus:7,0-2").unwrap(), [7, 0, 1, 2]);
        let refused = |text| order(text).unwrap_err();
        assert!(refused("cpus:12").contains("test has 12 CPUs, 0-11"));
        assert!(refused("cpus:").contains("neither a number nor a range"));
        assert!(refused("cpus:0x0f").contains("neither a number nor a range"));
    }

    #[test]
    fn names_order_all_cpus() {
        for (name, first) in [
            ("compact", [0, 3, 6]),
            ("scatter", [0, 1, 2]),
            ("identity", [0, 1, 2]),
        ] {
            let order = thread_order(name, &cpus(), &Nothing).unwrap();
            assert_eq!(order[..3], first.map(CpuId), "{name}");
            assert_eq!(order.len(), 12);
        }
    }
}
