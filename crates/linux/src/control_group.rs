//! The control groups of a process, and those around them (Linux, Documentation/admin-guide/cgroup-v2.rst;
//! cgroup-v1/cgroups.rst).

use crate::Host;

/// A control group in one hierarchy, by its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    /// Path of its folder, below the host's root.
    pub folder: String,
    /// Whether it belongs to the unified hierarchy (version 2), whose files have other names.
    pub unified: bool,
}

impl Host {
    /// The groups of a process (`self` or a PID) in which a controller may limit it, by hierarchy, each from the
    /// process's own group outwards; empty if they cannot be read.
    #[must_use]
    pub fn control_groups(&self, process: &str, controller: &str) -> Vec<ControlGroup> {
        let mut all = Vec::new();
        let listed = self.read(&format!("proc/{process}/cgroup")).unwrap_or_default();
        for line in listed.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let unified = controllers.is_empty();
            if !unified && controllers.split(',').all(|c| c != controller) {
                continue;
            }
            let root = match unified {
                true => "sys/fs/cgroup".to_owned(),
                false => format!("sys/fs/cgroup/{controller}"),
            };
            let mut path = path.trim_end_matches('/');
            loop {
                all.push(ControlGroup {
                    folder: format!("{root}{path}"),
                    unified,
                });
                let Some((above, _)) = path.rsplit_once('/') else {
                    break;
                };
                path = above;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_from_the_inside_out_hierarchy_by_hierarchy() {
        let root = std::env::temp_dir().join(format!("nodewise-control-groups-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc/7")).unwrap();
        std::fs::write(
            root.join("proc/7/cgroup"),
            "4:cpu,memory:/a\n3:cpuset:/c\n0::/b/c:d\nnonsense\n",
        )
        .unwrap();
        let folders: Vec<_> = Host::at(&root)
            .control_groups("7", "memory")
            .into_iter()
            .map(|g| (g.folder, g.unified))
            .collect();
        std::fs::remove_dir_all(&root).unwrap();
        let expected = [
            ("sys/fs/cgroup/memory/a", false),
            ("sys/fs/cgroup/memory", false),
            ("sys/fs/cgroup/b/c:d", true),
            ("sys/fs/cgroup/b", true),
            ("sys/fs/cgroup", true),
        ];
        assert_eq!(
            folders,
            expected.map(|(folder, unified)| (folder.to_owned(), unified))
        );
    }
}
