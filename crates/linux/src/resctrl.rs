//! Memory bandwidth as resctrl counts it (Linux, Documentation/filesystems/resctrl.rst): the only
//! measurement of remote traffic that needs neither root nor a rebuild, where it is mounted.

use crate::Host;

/// Bytes moved since an arbitrary start, over all domains of one monitoring group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From and to any memory.
    pub total: u64,
    /// From and to the domain's own memory.
    pub local: u64,
}

impl Traffic {
    /// The share of traffic since `earlier` that stayed local; `None` without traffic, or when a
    /// counter wrapped between.
    #[must_use]
    pub fn local_share_since(self, earlier: Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|t| *t > 0)?;
        let local = self.local.checked_sub(earlier.local)?;
        Some((local as f64 / total as f64).min(1.0))
    }
}

impl Host {
    /// The folder of the monitoring group that holds a process, when one other than the root does.
    #[must_use]
    pub fn monitoring_group(&self, pid: u32) -> Option<String> {
        let groups = self.names("sys/fs/resctrl/mon_groups").ok()?;
        let folders = groups.iter().map(|g| format!("sys/fs/resctrl/mon_groups/{g}"));
        let holds = |folder: &String| {
            let tasks = self.read(&format!("{folder}/tasks")).unwrap_or_default();
            tasks.lines().any(|line| line.trim().parse() == Ok(pid))
        };
        folders.into_iter().find(holds)
    }

    /// Traffic of a monitoring group's folder; the root group `sys/fs/resctrl` holds everything
    /// that is in no other. `None` where resctrl is not mounted or the CPU cannot count.
    #[must_use]
    pub fn traffic(&self, group: &str) -> Option<Traffic> {
        let domains = self.names(&format!("{group}/mon_data")).ok()?;
        let caches = domains.iter().filter(|d| d.starts_with("mon_L3_"));
        let count = |domain: &String, what: &str| -> Option<u64> {
            self.line(&format!("{group}/mon_data/{domain}/mbm_{what}_bytes"))?
                .parse()
                .ok()
        };
        let mut sum: Option<Traffic> = None;
        for domain in caches {
            let (Some(total), Some(local)) = (count(domain, "total"), count(domain, "local")) else {
                continue;
            };
            let so_far = sum.unwrap_or_default();
            sum = Some(Traffic {
                total: so_far.total.wrapping_add(total),
                local: so_far.local.wrapping_add(local),
            });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_difference() {
        let (before, after) = (
            Traffic {
                total: 100,
                local: 90,
            },
            Traffic {
                total: 300,
                local: 140,
            },
        );
        assert_eq!(after.local_share_since(before), Some(0.25));
        assert_eq!(before.local_share_since(after), None, "wrapped");
        assert_eq!(before.local_share_since(before), None, "idle");
    }

    #[test]
    fn a_groups_domains_add_up_and_its_tasks_are_found() {
        let root = std::env::temp_dir().join(format!("nodewise-resctrl-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join("sys/fs/resctrl/mon_groups/batch").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("tasks", "17\n4242\n");
        for (domain, total, local) in [
            ("mon_L3_00", "1000", "400"),
            ("mon_L3_01", "500", "500"),
            ("mon_L3_02", "Unavailable", "1"),
        ] {
            write(
                &format!("mon_data/{domain}/mbm_total_bytes"),
                &format!("{total}\n"),
            );
            write(
                &format!("mon_data/{domain}/mbm_local_bytes"),
                &format!("{local}\n"),
            );
        }
        let host = Host::at(&root);
        let group = host.monitoring_group(4242).unwrap();
        assert_eq!(
            host.traffic(&group),
            Some(Traffic {
                total: 1500,
                local: 900
            })
        );
        assert_eq!(host.monitoring_group(4243), None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
