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
    /// From which byte of the file on.
    pub offset: u64,
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
        let name = fields.nth(2).unwrap_or("").trim().to_owned();
        let area = Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            permissions,
            offset,
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
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(Area::parse("1000-3000 rw-p 00000000 00:00 0 ").unwrap().name, "");
        for bad in [
            "",
            "1000",
            "3000-1000 rw-p 0 0 0",
            "x-y rw-p 0 0 0",
            "1000-2000 rw",
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

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(line in "[ -~]{0,80}") {
            let _ = Area::parse(&line);
        }
    }
}
