//! The CPUs that a process's control group leaves it, whatever it has bound itself to (Linux,
//! Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; cgroup-v1/cpusets.rst).

use crate::process::parse_list;
use crate::{ControlGroup, Host};

impl Host {
    /// CPUs that are online, ascending; empty if unknown.
    #[must_use]
    pub fn online_cpus(&self) -> Vec<u32> {
        let list = self.line("sys/devices/system/cpu/online");
        list.map_or_else(Vec::new, |l| parse_list(&l))
    }

    /// The CPUs that a process may bind itself to: the online ones that its control group permits; all online ones if
    /// no group limits it, or none can be read.
    #[must_use]
    pub fn cpuset(&self, pid: u32) -> Vec<u32> {
        let online = self.online_cpus();
        let groups = self.control_groups(&pid.to_string(), "cpuset");
        // A group without CPUs of its own has those of the nearest group above that has some.
        match groups.iter().find_map(|group| self.cpus_of_group(group)) {
            Some(cpus) => online.into_iter().filter(|c| cpus.contains(c)).collect(),
            None => online,
        }
    }

    fn cpus_of_group(&self, group: &ControlGroup) -> Option<Vec<u32>> {
        let file = match group.unified {
            true => "cpuset.cpus.effective",
            false => "cpuset.effective_cpus",
        };
        let cpus = parse_list(&self.line(&format!("{}/{file}", group.folder))?);
        (!cpus.is_empty()).then_some(cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_cpus_of_its_own_has_those_above_it_and_offline_ones_are_not_used() {
        let root = std::env::temp_dir().join(format!("nodewise-cpuset-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online", "0-5\n");
        write("proc/7/cgroup", "0::/batch/inner\n");
        write("proc/8/cgroup", "4:cpu,cpuset:/old\n0::/\n");
        write("proc/9/cgroup", "0::/none\n");
        write("sys/fs/cgroup/batch/cpuset.cpus.effective", "4-7\n");
        write("sys/fs/cgroup/batch/inner/memory.max", "max\n");
        write("sys/fs/cgroup/cpuset/old/cpuset.effective_cpus", "1\n");
        let host = Host::at(&root);
        assert_eq!(host.cpuset(7), [4, 5]);
        assert_eq!(host.cpuset(8), [1]);
        assert_eq!(host.cpuset(9), [0, 1, 2, 3, 4, 5]);
        assert_eq!(host.cpuset(10), [0, 1, 2, 3, 4, 5]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_we_are_bound_to_here_is_of_our_cpuset() {
        let allowed = crate::affinity::allowed_cpus().unwrap();
        let cpuset = Host::default().cpuset(std::process::id());
        assert!(
            allowed.iter().all(|c| cpuset.contains(c)),
            "{allowed:?} of {cpuset:?}"
        );
    }
}
