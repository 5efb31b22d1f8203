//! The kernel's memory tiers: which nodes it takes for faster than others (Linux, Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers).

use super::{Finding, State};
use nodewise_linux::Host;

/// Says what the kernel does with several tiers; nothing where it knows one, or none.
pub fn finding(host: &Host) -> Option<Finding> {
    let tiers = tiers(host);
    let (fastest, rest) = tiers.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let order = rest.iter().fold(format!("nodes {fastest}"), |all, tier| {
        format!("{all}, then {tier}")
    });
    let demotes = host.line("sys/kernel/mm/numa/demotion_enabled");
    let demotes = demotes.is_some_and(|text| matches!(text.as_str(), "true" | "1"));
    let promotes = host.numa_balancing().is_some_and(|mode| mode & 2 != 0);
    let does = match (demotes, promotes) {
        (true, true) => {
            "when fast memory is full, pages leave it for slower memory, and come back when they are accessed often"
        }
        (true, false) => {
            "when fast memory is full, pages leave it for slower memory; none comes back (kernel.numa_balancing=2 brings them)"
        }
        (false, true) => {
            "pages in slower memory that are accessed often come into fast memory while that has room; none leaves it \
             (/sys/kernel/mm/numa/demotion_enabled)"
        }
        (false, false) => "pages stay where they are put",
    };
    let because = format!("memory tiers of the kernel, the fastest first: {order}; {does}");
    Some(Finding::new("settings", "tiers", State::Works, because))
}

/// The nodes of each tier, the fastest first.
fn tiers(host: &Host) -> Vec<String> {
    let folder = "sys/devices/virtual/memory_tiering";
    let tier = |name: String| {
        let number: u32 = name.strip_prefix("memory_tier")?.parse().ok()?;
        Some((number, host.line(&format!("{folder}/{name}/nodelist"))?))
    };
    let names = host.names(folder).unwrap_or_default();
    let mut tiers: Vec<(u32, String)> = names.into_iter().filter_map(tier).collect();
    tiers.retain(|(_, nodes)| !nodes.is_empty());
    tiers.sort_unstable();
    tiers.into_iter().map(|(_, nodes)| nodes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_named_with_what_moves_between_them() {
        let root = std::env::temp_dir().join(format!("nodewise-tiers-{}", std::process::id()));
        let write = |below: &str, text: &str| {
            let path = root.join(below);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
            "0-1\n",
        );
        assert!(finding(&Host::at(&root)).is_none(), "one tier is none");
        write("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "2\n");
        write("sys/devices/virtual/memory_tiering/uevent", "");
        write("proc/sys/kernel/numa_balancing", "2\n");
        write("sys/kernel/mm/numa/demotion_enabled", "true\n");
        let said = finding(&Host::at(&root)).unwrap().because;
        assert!(
            said.contains("nodes 0-1, then 2; when fast memory is full") && said.contains("come back"),
            "{said}"
        );
        write("sys/kernel/mm/numa/demotion_enabled", "false\n");
        write("proc/sys/kernel/numa_balancing", "1\n");
        let said = finding(&Host::at(&root)).unwrap().because;
        assert!(said.ends_with("pages stay where they are put"), "{said}");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
