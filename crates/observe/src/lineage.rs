//! The ancestors of a process image.

use crate::events::{self, Event};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Folders of an image's parent and its further ancestors, nearest first, each with the number of bytes in its log when
/// it forked. An image that names itself or a descendant has no parent.
pub fn ancestors(image: &Path, parent: &str, bytes: u64) -> Vec<(PathBuf, u64)> {
    let Some(raw) = image.parent() else {
        return Vec::new();
    };
    let mut seen = HashSet::from([image.to_owned()]);
    let mut line = Vec::new();
    let mut next = Some((parent.to_owned(), bytes));
    while let Some((name, bytes)) = next.take().filter(|(name, _)| !name.contains('/')) {
        let folder = raw.join(name);
        if !seen.insert(folder.clone()) {
            break;
        }
        // A log that cannot be read is reported where its other content is read.
        let _ = events::read(&folder.join("events"), 0, bytes, |text| {
            if let (None, Some(Event::Parent { bytes, folder })) = (&next, Event::parse(text)) {
                next = Some((folder.to_owned(), bytes));
            }
        });
        line.push((folder, bytes));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_who_has_no_parent_or_comes_again() {
        let raw = std::env::temp_dir().join(format!("nodewise-lineage-{}", std::process::id()));
        let log = |name: &str, text: &str| {
            std::fs::create_dir_all(raw.join(name)).unwrap();
            std::fs::write(raw.join(name).join("events"), text).unwrap();
        };
        log("1-0", "process 1 2 0 0 0\n");
        log("2-0", "parent 12 1-0\nparent 12 9-0\n");
        log("3-0", "thread 0 1 0\nparent 20 2-0\n");
        log("4-0", "parent ff 5-0\n");
        log("5-0", "parent ff 4-0\n");
        log("6-0", "parent ff ../6-0\n");
        let names = |image: &str, parent: &str, bytes| {
            let line = ancestors(&raw.join(image), parent, bytes).into_iter();
            let name = |(folder, bytes): (PathBuf, u64)| (folder.file_name().unwrap().to_owned(), bytes);
            line.map(name)
                .map(|(name, bytes)| (name.into_string().unwrap(), bytes))
                .collect::<Vec<_>>()
        };
        let of = |name: &str, bytes: u64| (name.to_owned(), bytes);
        assert_eq!(
            names("7-0", "3-0", 64),
            [of("3-0", 64), of("2-0", 32), of("1-0", 18)]
        );
        assert_eq!(
            names("7-0", "3-0", 13),
            [of("3-0", 13)],
            "it had no parent by then"
        );
        assert_eq!(names("4-0", "5-0", 255), [of("5-0", 255)]);
        assert_eq!(names("7-0", "6-0", 255), [of("6-0", 255)]);
        assert_eq!(names("7-0", "7-0", 255), []);
        std::fs::remove_dir_all(raw).unwrap();
    }
}
