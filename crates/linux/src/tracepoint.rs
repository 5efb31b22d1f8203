//! Tracepoint ids and field layouts from tracefs.

use crate::Host;
use std::collections::HashMap;

/// The usual mount points of tracefs.
const USUAL_MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// A tracepoint of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its number for `perf_event_open`.
    pub id: u64,
    fields: HashMap<String, (usize, usize)>,
}

impl Tracepoint {
    /// From the text of its `format` file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = text
            .lines()
            .find_map(|l| l.strip_prefix("ID:"))?
            .trim()
            .parse()
            .ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Self { id, fields })
    }

    /// The value of a field in a record's bytes; `None` when this kernel's record has none.
    #[must_use]
    pub fn value(&self, name: &str, record: &[u8]) -> Option<u64> {
        let &(offset, size) = self.fields.get(name)?;
        let bytes = record.get(offset..offset.checked_add(size)?)?;
        let mut word = [0; 8];
        word.get_mut(..size)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}

/// A tab, then `field:unsigned long address;`, `offset:8;`, `size:8;`, `signed:0;`, tabs between them.
fn field(line: &str) -> Option<(String, (usize, usize))> {
    let mut parts = line.trim().split(';').map(str::trim);
    let name = parts.next()?.strip_prefix("field:")?.rsplit(' ').next()?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    Some((name.to_owned(), (offset, size)))
}

impl Host {
    /// A tracepoint by its group and name; `None` where tracefs is not mounted, or not ours to read.
    #[must_use]
    pub fn tracepoint(&self, group: &str, name: &str) -> Option<Tracepoint> {
        let mounts = self.read("proc/self/mounts").unwrap_or_default();
        let other_mounts = mounts.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (folder, kind) = (words.nth(1)?, words.next()?);
            (kind == "tracefs").then(|| folder.trim_start_matches('/').to_owned())
        });
        let folders = USUAL_MOUNTS.map(str::to_owned).into_iter().chain(other_mounts);
        let mut texts = folders.filter_map(|f| self.line(&format!("{f}/events/{group}/{name}/format")));
        texts.find_map(|text| Tracepoint::parse(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: &str = "name: page_fault_user\nID: 190\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:unsigned long address;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int reason;\toffset:16;\tsize:4;\tsigned:1;\n\nprint fmt: \"address=%ps\"";

    #[test]
    fn fields_are_found_where_the_kernel_puts_them() {
        let point = Tracepoint::parse(FORMAT).unwrap();
        let mut record = vec![190, 0, 0, 0, 0, 0, 0, 0];
        record.extend(0x7f00_1234_5678_u64.to_le_bytes());
        record.extend(5_u32.to_le_bytes());
        assert_eq!(point.id, 190);
        assert_eq!(point.value("common_type", &record), Some(190));
        assert_eq!(point.value("address", &record), Some(0x7f00_1234_5678));
        assert_eq!(point.value("reason", &record), Some(5));
        assert_eq!(point.value("reason", &record[..18]), None);
        assert_eq!(point.value("mode", &record), None);
    }

    proptest! {
        #[test]
        fn arbitrary_formats_never_panic(text in "(ID: ?[0-9]{0,3}\n)?(\tfield:[a-z ]{0,9};?\toffset:[0-9]{0,22};\tsize:[0-9]{0,22};\n){0,3}") {
            if let Some(point) = Tracepoint::parse(&text) {
                for name in point.fields.keys() {
                    let _ = point.value(name, &[0; 16]);
                }
            }
        }
    }
}
