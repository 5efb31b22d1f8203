//! `/proc/PID/numa_maps`: on which node the pages of each range lie (Linux,
//! Documentation/filesystems/proc.rst, "numa_maps").

use crate::{Host, ReadError};
use std::collections::BTreeMap;

/// What a range of addresses is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// The heap at the program break.
    Heap,
    /// The main thread's stack.
    Stack,
    /// A file, with its path.
    File(String),
    /// Anything else without a name.
    Anonymous,
}

/// A range of addresses with one memory policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Start address of the mapping.
    pub start: u64,
    /// Memory policy as the kernel writes it: `default`, `interleave:0-3`, `prefer (many):1`.
    pub policy: String,
    /// The kind of the mapping.
    pub kind: RangeKind,
    /// Page size pages are counted in, bytes.
    pub page_size: u64,
    /// Resident pages by the kernel's node number; empty when nothing is resident.
    pub pages: BTreeMap<u32, u64>,
}

impl Range {
    /// Resident bytes by the kernel's node number.
    pub fn bytes(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.pages
            .iter()
            .map(|(node, pages)| (*node, pages.saturating_mul(self.page_size)))
    }

    /// One line of `numa_maps`; `None` when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut tokens = line.split_ascii_whitespace();
        let start = u64::from_str_radix(tokens.next()?, 16).ok()?;
        let mut policy = tokens.next()?.to_owned();
        let mut range = Self {
            start,
            policy: String::new(),
            kind: RangeKind::Anonymous,
            page_size: 4096,
            pages: BTreeMap::new(),
        };
        for token in tokens {
            match token.split_once('=') {
                // Two policies have names of two words: `prefer (many)`, `weighted interleave`.
                _ if policy == "weighted" || token.starts_with("(many)") => {
                    policy = format!("{policy} {token}");
                }
                Some(("file", path)) => range.kind = RangeKind::File(unescape(path)),
                Some(("kernelpagesize_kB", kb)) => {
                    range.page_size = kb.parse::<u64>().ok()?.checked_mul(1024)?;
                }
                Some((key, count)) => {
                    if let Some(node) = key.strip_prefix('N').and_then(|n| n.parse().ok()) {
                        range.pages.insert(node, count.parse().ok()?);
                    }
                }
                None if token == "heap" => range.kind = RangeKind::Heap,
                None if token == "stack" => range.kind = RangeKind::Stack,
                None => {}
            }
        }
        range.policy = policy;
        Some(range)
    }
}

/// Paths have space, tab, newline, `=` and backslash as octal: `\040`.
fn unescape(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let octal = (bytes[at] == b'\\').then(|| path.get(at + 1..at + 4)).flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Host {
    /// Resident bytes of a process by the kernel's node number.
    ///
    /// # Errors
    /// Those of [`Host::numa_maps`].
    pub fn resident_by_node(&self, pid: u32) -> Result<BTreeMap<u32, u64>, ReadError> {
        let mut all = BTreeMap::new();
        for (node, bytes) in self.numa_maps(pid)?.iter().flat_map(Range::bytes) {
            *all.entry(node).or_insert(0) += bytes;
        }
        Ok(all)
    }

    /// The ranges of a process. Walks its page tables: about a second per 100 GB of 4 KiB pages.
    ///
    /// # Errors
    /// No such process, not ours to look at, or a kernel without NUMA (no such file).
    pub fn numa_maps(&self, pid: u32) -> Result<Vec<Range>, ReadError> {
        let below = format!("proc/{pid}/numa_maps");
        let text = self.read(&below)?;
        let lines = text.lines().enumerate();
        lines
            .map(|(n, line)| {
                Range::parse(line).ok_or_else(|| self.odd(&below, &format!("line {} is no range", n + 1)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> Range {
        Range::parse(line).unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn a_file_range_has_its_path_and_pages_by_node() {
        let range = parse(
            "7f3c18000000 default file=/opt/my\\040app/lib\\134x.so mapped=6 mapmax=3 N0=2 N3=4 kernelpagesize_kB=4",
        );
        assert_eq!(range.start, 0x7f3c_1800_0000);
        assert_eq!(range.kind, RangeKind::File("/opt/my app/lib\\x.so".to_owned()));
        assert_eq!(range.pages, BTreeMap::from([(0, 2), (3, 4)]));
        assert_eq!(range.bytes().collect::<Vec<_>>(), [(0, 8192), (3, 16384)]);
    }

    #[test]
    fn huge_pages_count_in_their_own_size() {
        let range = parse(
            "7f0000000000 interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048",
        );
        assert_eq!(range.bytes().collect::<Vec<_>>(), [(1, 4 << 20)]);
        assert_eq!(range.policy, "interleave:0-3");
    }

    #[test]
    fn policies_of_two_words_and_with_flags_stay_whole() {
        assert_eq!(
            parse("1000 prefer (many):0-1 heap anon=1 N0=1").policy,
            "prefer (many):0-1"
        );
        assert_eq!(
            parse("1000 weighted interleave:0,2 anon=1 N2=1").policy,
            "weighted interleave:0,2"
        );
        assert_eq!(parse("1000 bind=static:1 stack N1=1").policy, "bind=static:1");
        assert_eq!(parse("1000 prefer:1 heap").kind, RangeKind::Heap);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for line in [
            "",
            "zz default",
            "1000",
            "1000 default N0=x",
            "1000 default kernelpagesize_kB=99999999999999999999",
        ] {
            assert_eq!(Range::parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "[0-9a-f]{0,18} ?(default|bind:[0-9]|weighted)?( [ -~]{0,12}){0,4}") {
            if let Some(range) = Range::parse(&line) {
                prop_assert!(range.bytes().count() == range.pages.len());
                prop_assert!(!range.policy.is_empty());
            }
        }

        #[test]
        fn arbitrary_text_never_panics(line in ".{0,60}") {
            let _ = Range::parse(&line);
            let _ = unescape(&line);
        }

        #[test]
        fn written_counts_are_read_back(start in any::<u64>(), pages in proptest::collection::btree_map(0u32..128, 1u64..1 << 40, 0..8)) {
            let counts: String = pages.iter().map(|(n, p)| format!(" N{n}={p}")).collect();
            let range = parse(&format!("{start:x} default anon=1 dirty=1 active=0{counts} kernelpagesize_kB=64"));
            prop_assert_eq!((range.start, range.page_size), (start, 65536));
            prop_assert_eq!(range.pages, pages);
        }
    }
}
