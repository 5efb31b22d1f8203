//! Reads `/etc/ld.so.cache`, ldconfig's index of system libraries.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Path of the cache.
pub(crate) const PATH: &str = "/etc/ld.so.cache";
/// Magic bytes of the format since glibc 2.2, which may follow the older format in the same file.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// The older format: its magic bytes, and the sizes of its header and of an entry.
const OLD: (&[u8], usize, usize) = (b"ld.so-1.7.0", 16, 12);
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// Flag of an entry whose processor requirement is an index into a table of folder names instead of a bit set.
const BY_NAME: u64 = 1 << 62;
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
const FOLDER_NAMES: u32 = 1;

/// The content of the cache in the current format.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
}

impl Cache {
    /// Parses the content of a cache file; empty if it is not one.
    pub fn of(mut bytes: Vec<u8>) -> Self {
        if bytes.starts_with(OLD.0) {
            let count = word(&bytes, 12).unwrap_or_default() as usize;
            let begins = count
                .saturating_mul(OLD.2)
                .saturating_add(OLD.1)
                .next_multiple_of(8);
            bytes.drain(..begins.min(bytes.len()));
        }
        if !bytes.starts_with(MAGIC) {
            bytes.clear();
        }
        Self { bytes }
    }

    /// The path of a library with these flags. If there are builds for several processors, the one in the first
    /// matching folder of `folders` (subfolders of `glibc-hwcaps`, the most specific first) is returned.
    pub fn find(&self, name: &OsStr, flags: i32, folders: &[&str]) -> Option<PathBuf> {
        let count = word(&self.bytes, MAGIC.len()).unwrap_or_default() as usize;
        let named = self.folder_names();
        let rank = |requirement: u64| match requirement {
            0 => Some(folders.len()),
            r if r & BY_NAME != 0 => {
                let folder = named.get((r & u64::from(u32::MAX)) as usize)?;
                folders.iter().position(|f| f.as_bytes() == *folder)
            }
            _ => None,
        };
        let entry = |i: usize| {
            let at = HEADER.checked_add(i.checked_mul(ENTRY)?)?;
            let matches = word(&self.bytes, at)? == flags as u32
                && self.string(word(&self.bytes, at + 4)?)? == name.as_bytes();
            let requirement = u64::from_le_bytes(self.bytes.get(at + 16..at + ENTRY)?.try_into().ok()?);
            matches.then_some((rank(requirement)?, word(&self.bytes, at + 8)?))
        };
        let most = self.bytes.len() / ENTRY;
        let (_, path) = (0..count.min(most))
            .filter_map(entry)
            .min_by_key(|(rank, _)| *rank)?;
        Some(OsStr::from_bytes(self.string(path)?).into())
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        self.bytes.get(offset as usize..)?.split(|b| *b == 0).next()
    }

    /// Names of the processor-specific folders, by index.
    fn folder_names(&self) -> Vec<&[u8]> {
        let names = || {
            let at = word(&self.bytes, 32)? as usize;
            if at == 0 || word(&self.bytes, at)? != EXTENSION_MAGIC {
                return None;
            }
            let sections = (0..word(&self.bytes, at + 4)?.min(16) as usize).map(|i| at + 8 + 16 * i);
            let section = sections
                .into_iter()
                .find(|s| word(&self.bytes, *s) == Some(FOLDER_NAMES))?;
            let (from, bytes) = (word(&self.bytes, section + 8)?, word(&self.bytes, section + 12)?);
            let numbers = self
                .bytes
                .get(from as usize..)?
                .get(..bytes as usize)?
                .chunks_exact(4);
            numbers
                .map(|n| self.string(u32::from_le_bytes(n.try_into().ok()?)))
                .collect()
        };
        names().unwrap_or_default()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with a library in two builds, one of them for newer processors.
    fn cache() -> Vec<u8> {
        let strings = b"libx.so\0/a/libx.so\0/a/v3/libx.so\0x86-64-v3\0";
        let begin = (HEADER + 2 * ENTRY) as u32;
        let extension = begin + strings.len().next_multiple_of(4) as u32;
        let mut bytes = [
            MAGIC,
            &2u32.to_le_bytes(),
            &[0; 8],
            &extension.to_le_bytes(),
            &[0; 12],
        ]
        .concat();
        for (path, requirement) in [(8, 0u64), (19, BY_NAME)] {
            bytes.extend(0x303i32.to_le_bytes());
            bytes.extend(begin.to_le_bytes());
            bytes.extend((begin + path).to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            bytes.extend(requirement.to_le_bytes());
        }
        bytes.extend(strings);
        bytes.resize(extension as usize, 0);
        for number in [EXTENSION_MAGIC, 1, FOLDER_NAMES, 0, extension + 24, 4, begin + 33] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_build_for_the_best_processor_is_found() {
        let cache = Cache::of(cache());
        let find = |name: &str, flags, folders: &[&str]| cache.find(name.as_ref(), flags, folders);
        assert_eq!(find("libx.so", 0x303, &[]), Some("/a/libx.so".into()));
        assert_eq!(
            find("libx.so", 0x303, &["x86-64-v3"]),
            Some("/a/v3/libx.so".into())
        );
        assert_eq!(find("libx.so", 0x3, &[]), None);
        assert_eq!(find("liby.so", 0x303, &[]), None);
    }

    #[test]
    fn an_older_format_before_it_is_skipped() {
        let mut both = OLD.0.to_vec();
        both.resize(12, 0);
        both.extend(1u32.to_le_bytes());
        both.resize((OLD.1 + OLD.2).next_multiple_of(8), 0);
        both.extend(cache());
        assert!(Cache::of(both).find("libx.so".as_ref(), 0x303, &[]).is_some());
    }

    #[test]
    fn no_byte_of_it_is_believed() {
        let whole = cache();
        for at in 0..whole.len() {
            for value in [0, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = Cache::of(damaged).find("libx.so".as_ref(), 0x303, &["x86-64-v3"]);
            }
            let _ = Cache::of(whole[..at].to_vec()).find("libx.so".as_ref(), 0x303, &[]);
        }
    }
}
