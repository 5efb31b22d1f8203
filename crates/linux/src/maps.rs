//! `/proc/PID/maps`: the mappings of a process (Linux, Documentation/filesystems/proc.rst, "maps").

use crate::{Host, ReadError};

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Start address of the mapping.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Four letters: `rw-p`, with `s` where it is shared.
    pub permissions: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// The file's device and inode, as `stat` reports them; zeros if it is no file mapping.
    pub file: (u64, u64),
    /// The file's path, a name in brackets, or nothing.
    pub name: String,
}

impl Area {
    /// One line of `maps`; `None` when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (addresses, rest) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let mut fields = rest.splitn(5, ' ');
        let permissions = fields.next()?.to_owned();
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        let device = libc::makedev(number(major)?, number(minor)?);
        let inode = fields.next()?.parse().ok()?;
        let name = fields.next().unwrap_or("").trim().to_owned();
        let area = Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            permissions,
            offset,
            file: (device, inode),
            name,
        };
        (area.start < area.end && area.permissions.len() == 4).then_some(area)
    }
}

impl Host {
    /// The mappings of a process, ascending; none of a process that is ending.
    ///
    /// # Errors
    /// No such process, or not ours to look at.
    pub fn maps(&self, pid: u32) -> Result<Vec<Area>, ReadError> {
        let below = format!("proc/{pid}/maps");
        let text = self.read(&below)?;
        let areas: Option<Vec<Area>> = text.lines().map(Area::parse).collect();
        areas.ok_or_else(|| self.odd(&below, "a line is no mapping"))
    }

    /// When a process began, Unix time in seconds; execution of another program does not change it.
    #[must_use]
    pub fn began(&self, pid: u32) -> Option<u64> {
        const TICKS: u64 = 100; // a second's, on every architecture (USER_HZ)
        let booted = self.read("proc/stat").ok()?;
        let booted: u64 = booted
            .lines()
            .find_map(|l| l.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()?;
        let stat = self.read(&format!("proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything; after it comes the third field.
        let (_, rest) = stat.rsplit_once(')')?;
        let ticks: u64 = rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()?;
        Some(booted + ticks / TICKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleeper::Sleeper;
    use proptest::prelude::*;

    #[test]
    fn names_keep_their_spaces_and_may_be_missing() {
        let line =
            "7f0000000000-7f0000021000 rw-s 00000000 00:01 1234                       /dev/shm/my file";
        let area = Area::parse(line).unwrap();
        assert_eq!((area.start, area.end), (0x7f00_0000_0000, 0x7f00_0002_1000));
        assert_eq!(
            (area.permissions.as_str(), area.name.as_str()),
            ("rw-s", "/dev/shm/my file")
        );
        assert_eq!(area.file, (libc::makedev(0, 1), 1234));
        assert_eq!(Area::parse("1000-3000 rw-p 00000000 00:00 0 ").unwrap().name, "");
        for bad in [
            "",
            "1000",
            "3000-1000 rw-p 0 0 0",
            "x-y rw-p 0 0 0",
            "1000-2000 rw",
            "1000-2000 rw-p 00000000 0001 0",
        ] {
            assert_eq!(Area::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_process_is_mapped_where_its_data_is() {
        let here = 0u8;
        let at = &raw const here as u64;
        let areas = Host::default().maps(std::process::id()).unwrap();
        assert!(
            areas
                .iter()
                .any(|a| (a.start..a.end).contains(&at) && a.permissions == "rw-p")
        );
        assert!(areas.windows(2).all(|w| w[0].end <= w[1].start));
    }

    #[test]
    fn a_child_began_now_and_this_process_before() {
        let child = Sleeper::start();
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let host = Host::default();
        let (began, own) = (
            host.began(child.id()).unwrap(),
            host.began(std::process::id()).unwrap(),
        );
        assert!(began.abs_diff(now) <= 2, "{began}, it is {now}");
        assert!(own <= began && host.began(u32::MAX - 1).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(line in "[ -~]{0,80}") {
            let _ = Area::parse(&line);
        }
    }
}
