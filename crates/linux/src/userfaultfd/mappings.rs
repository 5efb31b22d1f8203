//! Reads the mappings of a process from `/proc/PID/maps` without allocating.

/// A mapping that is not of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Start of the next mapping of any kind, up to which this one can grow; for the last mapping, its own end.
    pub room: u64,
    /// Whether it is private, readable and writable.
    pub private_writable: bool,
    /// Whether it is one of the kernel's own, such as `[vdso]`.
    pub special: bool,
}

/// The neighbourhood of a mapping, which tells whether it has merged with memory next to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Start of the mapping that ends where this one begins, and end of the one that begins where this one ends; 0 if
    /// there is none.
    pub adjacent: (u64, u64),
    /// Start of the next mapping; see [`Mapping::room`].
    pub room: u64,
}

/// The surroundings of the private, readable and writable mapping with exactly these bounds; none if there is none.
pub fn surroundings(path: &[u8], buffer: &mut [u8], start: u64, end: u64) -> Option<Surroundings> {
    let (mut room, mut before, mut after) = (None, 0, 0);
    anonymous(path, buffer, |mapping| {
        if mapping.private_writable && (mapping.start, mapping.end) == (start, end) {
            room = Some(mapping.room);
        }
        if mapping.end == start {
            before = mapping.start;
        }
        if mapping.start == end {
            after = mapping.end;
        }
    });
    room.map(|room| Surroundings {
        adjacent: (before, after),
        room,
    })
}

/// Calls `found` with start and end of every range between two file mappings that contains an anonymous mapping: from
/// the start of the first such mapping to the start of the next file mapping. Mappings inside may grow, merge and go
/// meanwhile.
pub fn ranges(path: &[u8], buffer: &mut [u8], mut found: impl FnMut(u64, u64)) {
    let mut range: Option<(u64, u64)> = None;
    anonymous(path, buffer, |mapping| {
        range = match range {
            Some((start, end)) if end == mapping.start && !mapping.special => Some((start, mapping.room)),
            other => {
                other.into_iter().for_each(|(start, end)| found(start, end));
                (!mapping.special).then_some((mapping.start, mapping.room))
            }
        };
    });
    range.into_iter().for_each(|(start, end)| found(start, end));
}

/// Whether an anonymous mapping contains the address. `path` and `buffer`: as for [`anonymous`].
pub fn contains(path: &[u8], buffer: &mut [u8], address: u64) -> bool {
    let mut there = false;
    anonymous(path, buffer, |Mapping { start, end, .. }| {
        there |= start <= address && address < end;
    });
    there
}

/// Calls `found` with every mapping that is not of a file, in ascending order. `path`: `/proc/PID/maps`, terminated by
/// 0.
pub fn anonymous(path: &[u8], buffer: &mut [u8], mut found: impl FnMut(Mapping)) {
    // SAFETY: the path is terminated by 0, and the buffer is large enough for what is read.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        let mut filled = 0;
        let mut last: Option<Mapping> = None;
        loop {
            let free = &mut buffer[filled..];
            let got = libc::read(file, free.as_mut_ptr().cast(), free.len());
            if got <= 0 {
                break;
            }
            filled += got as usize;
            let mut line = 0;
            while let Some(length) = buffer[line..filled].iter().position(|b| *b == b'\n') {
                let text = &buffer[line..line + length];
                if let (Some(last), Some((start, _))) = (last.take(), bounds(text)) {
                    found(Mapping { room: start, ..last });
                }
                last = mapping(text);
                line += length + 1;
            }
            buffer.copy_within(line..filled, 0);
            filled -= line;
        }
        libc::close(file);
        last.into_iter().for_each(found);
    }
}

/// Parses a line of `maps`; none if the mapping is of a file.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let (start, end) = bounds(line)?;
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty()).skip(1);
    let private_writable = words.next()? == b"rw-p";
    let inode = words.nth(2)?; // after offset and device
    let special = words.next().is_some_and(|name| name.starts_with(b"[v"));
    (inode == b"0").then_some(Mapping {
        start,
        end,
        room: end,
        private_writable,
        special,
    })
}

/// Parses the start and end addresses in a line of `maps`.
fn bounds(line: &[u8]) -> Option<(u64, u64)> {
    let mut bounds = line.split(|b| *b == b' ').next()?.split(|b| *b == b'-');
    Some((hexadecimal(bounds.next()?)?, hexadecimal(bounds.next()?)?))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        Some(value << 4 | u64::from((*digit as char).to_digit(16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let file = b"55d0a0000000-55d0a0021000 r--p 00001000 08:01 1234                       /usr/bin/x";
        assert_eq!(mapping(file), None);
        let found = |private_writable| {
            Some(Mapping {
                start: 0x7f00,
                end: 0x7fff,
                room: 0x7fff,
                private_writable,
                special: false,
            })
        };
        assert_eq!(mapping(b"7f00-7fff rw-p 00000000 00:00 0 "), found(true));
        let heap = b"7f00-7fff rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(mapping(heap), found(true));
        assert_eq!(mapping(b"7f00-7fff r--p 00000000 00:00 0 "), found(false));
        assert_eq!(mapping(b"7f00-7fff rw-s 00000000 00:00 0 "), found(false));
        assert_eq!(mapping(b""), None);
    }

    #[test]
    fn a_mapping_is_found_with_what_touches_it() {
        let lines = "1000-3000 r--p 0 00:00 0\n3000-5000 rw-p 0 00:00 0\n5000-6000 ---p 0 00:00 0\n8000-9000 rw-p 0 00:00 0\n";
        let path = std::env::temp_dir().join(format!("nodewise-surroundings-{}", std::process::id()));
        std::fs::write(&path, lines).unwrap();
        let text = format!("{}\0", path.display());
        let at = |start, end| {
            let found = surroundings(text.as_bytes(), &mut [0; 4096], start, end)?;
            Some((found.adjacent, found.room))
        };
        assert_eq!(at(0x3000, 0x5000), Some(((0x1000, 0x6000), 0x5000)));
        assert_eq!(at(0x8000, 0x9000), Some(((0, 0), 0x9000)));
        assert_eq!(at(0x1000, 0x3000), None, "it cannot be written");
        assert_eq!(at(0x3000, 0x4000), None, "a part");
        let mut rooms = Vec::new();
        anonymous(text.as_bytes(), &mut [0; 40], |mapping| {
            rooms.push((mapping.start, mapping.room));
        });
        assert_eq!(
            rooms,
            [
                (0x1000, 0x3000),
                (0x3000, 0x5000),
                (0x5000, 0x8000),
                (0x8000, 0x9000)
            ]
        );
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn ranges_end_at_files_and_at_what_is_the_kernels() {
        let lines = "1000-3000 rw-p 0 00:00 0\n4000-5000 ---p 0 00:00 0\n7000-8000 r-xp 0 08:01 5 /x\n9000-a000 rw-p 0 00:00 0 [heap]\n\
                     b000-c000 r--p 0 00:00 0 [vvar]\nd000-e000 rw-p 0 00:00 0 [stack]\n";
        let path = std::env::temp_dir().join(format!("nodewise-ranges-{}", std::process::id()));
        std::fs::write(&path, lines).unwrap();
        let mut all = Vec::new();
        let text = format!("{}\0", path.display());
        ranges(text.as_bytes(), &mut [0; 4096], |start, end| {
            all.push((start, end));
        });
        assert_eq!(all, [(0x1000, 0x7000), (0x9000, 0xb000), (0xd000, 0xe000)]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn small_buffers_find_all_of_our_own() {
        let mut all = Vec::new();
        anonymous(b"/proc/self/maps\0", &mut [0; 1 << 16], |mapping| {
            all.push(mapping.start);
        });
        let mut again = Vec::new();
        anonymous(b"/proc/self/maps\0", &mut [0; 400], |mapping| {
            again.push(mapping.start);
        });
        assert!(all.len() > 3, "{all:?}");
        // Other tests map memory at the same time.
        assert!(again.len() + 8 >= all.len() && again.is_sorted());
    }
}
