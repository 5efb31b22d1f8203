//! Scan period of the kernel's NUMA balancing: `sched/numa_balancing` in debugfs, for all processes.

use crate::held_setting::{HeldSetting, Separate, Setting};
use crate::{Host, ReadError};
use std::io;

/// Milliseconds between scans of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Delay from a program's start to the first scan, milliseconds.
    pub delay_ms: u32,
    /// Shortest period between scans, milliseconds.
    pub least_ms: u32,
    /// Longest period between scans, milliseconds.
    pub most_ms: u32,
}

const FILES: [&str; 3] = ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"];

impl Scan {
    /// A fixed scan period. With a longer maximum the kernel would slow down while pages are well placed, and would
    /// notice late that they no longer are.
    #[must_use]
    pub fn every(ms: u32) -> Self {
        let ms = ms.max(1);
        Self {
            delay_ms: ms,
            least_ms: ms,
            most_ms: ms,
        }
    }

    fn values(self) -> [u32; 3] {
        [self.delay_ms, self.least_ms, self.most_ms]
    }
}

/// In an order in which the minimum never exceeds the maximum.
fn writes(values: &[u32]) -> Vec<(usize, u32)> {
    let &[delay, least, most] = values else {
        return Vec::new();
    };
    vec![MINIMUM_MEANWHILE, (2, most), (1, least), (0, delay)]
}

/// The minimum's file, and what it holds while the others are written.
const MINIMUM_MEANWHILE: (usize, u32) = (1, 1);

impl Host {
    /// The kernel's current setting.
    ///
    /// # Errors
    /// debugfs is not mounted, not ours to read, or locked.
    pub fn scan(&self) -> Result<Scan, ReadError> {
        let folder = "sys/kernel/debug/sched/numa_balancing";
        let number = |name: &str| {
            let below = format!("{folder}/{name}");
            let text = self.read(&below)?;
            text.trim()
                .parse::<u32>()
                .map_err(|_| self.odd(&below, "not a number"))
        };
        Ok(Scan {
            delay_ms: number(FILES[0])?,
            least_ms: number(FILES[1])?,
            most_ms: number(FILES[2])?,
        })
    }
}

/// Exclusive ownership of the kernel's setting within this program's processes. The old setting is restored when this
/// is dropped or this process ends, unless others changed it meanwhile.
pub struct Held(HeldSetting);

impl Held {
    /// Takes ownership of the setting, and changes it.
    ///
    /// # Errors
    /// It cannot be read or written, or another of our processes has it: `WouldBlock`.
    pub fn take(host: &Host, scan: Scan) -> io::Result<Self> {
        let folder = host.sys().join("kernel/debug/sched/numa_balancing");
        let setting = Setting {
            what: "scan setting",
            name: c"nodewise-scan",
            files: FILES.iter().map(|name| folder.join(name)).collect(),
            writes,
            meanwhile: Some(MINIMUM_MEANWHILE),
            separate: Separate::No,
        };
        let now = || {
            let now = host.scan().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
            Ok(now.values().to_vec())
        };
        HeldSetting::take(&host.run(), setting, now, |_| Ok(scan.values().to_vec())).map(Self)
    }

    /// Changes the setting again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set(&self, scan: Scan) -> io::Result<()> {
        self.0.set(&scan.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held_setting::when_free;
    use std::path::PathBuf;

    /// A copy of the kernel's files.
    fn host(name: &str) -> (PathBuf, Host) {
        let root = std::env::temp_dir().join(format!("nodewise-scan-{name}-{}", std::process::id()));
        let folder = root.join("sys/kernel/debug/sched/numa_balancing");
        std::fs::create_dir_all(&folder).unwrap();
        for (file, value) in FILES.iter().zip(["1000", "1000", "60000"]) {
            std::fs::write(folder.join(file), value).unwrap();
        }
        (root.clone(), Host::at(&root))
    }

    const BEFORE: Scan = Scan {
        delay_ms: 1000,
        least_ms: 1000,
        most_ms: 60000,
    };

    #[test]
    fn what_was_is_put_back() {
        let (root, host) = host("drop");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        assert_eq!(host.scan().unwrap(), Scan::every(100));
        held.set(Scan::every(300)).unwrap();
        assert_eq!(host.scan().unwrap().least_ms, 300);
        drop(held);
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
        assert!(Held::take(&host, BEFORE).is_err());
    }

    #[test]
    fn one_at_a_time_has_it() {
        let (root, host) = host("twice");
        let first = Held::take(&host, Scan::every(100)).unwrap();
        let second = Held::take(&host, Scan::every(50));
        assert!(matches!(second, Err(e) if e.kind() == io::ErrorKind::WouldBlock));
        drop(first);
        assert_eq!(host.scan().unwrap(), BEFORE);
        drop(when_free(|| Held::take(&host, Scan::every(50))));
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_somebody_else_set_meanwhile_stays() {
        let (root, host) = host("else");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        let folder = host.sys().join("kernel/debug/sched/numa_balancing");
        std::fs::write(folder.join(FILES[2]), "777\n").unwrap();
        drop(held);
        assert_eq!(host.scan().unwrap().most_ms, 777);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_was_is_put_back_by_the_next_if_the_keeper_is_killed() {
        let (root, host) = host("killed");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        held.set(Scan::every(200)).unwrap();
        held.0.kill_keeper();
        drop(held);
        assert_eq!(host.scan().unwrap(), Scan::every(200));
        drop(when_free(|| Held::take(&host, Scan::every(50))));
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
    }
}
