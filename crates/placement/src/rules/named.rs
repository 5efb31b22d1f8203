//! Names of memory that several processes can map, as rules write them.

use glob::Pattern;

/// What a rule for files and shared memory names: `file:GLOB` or a path, `shm:GLOB`, `memfd:GLOB`, `sysv:0xKEY`,
/// `shared`, `hugetlb:GLOB`. A kind alone means all of its objects. In names that recordings have, `*` and `?` stand for
/// any characters, slashes too, and a path that does not begin with a slash may be anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    kind: &'static str,
    name: String,
    /// The pattern of a whole name as recordings have it.
    whole: Pattern,
}

/// The kinds that a name can begin with.
pub const NAMED_KINDS: [&str; 6] = ["file", "shm", "memfd", "sysv", "shared", "hugetlb"];
/// The folder of POSIX shared memory.
const SHARED_MEMORY: &str = "/dev/shm/";

impl Named {
    /// Reads a rule's name; `None` if it is no pattern.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let (kind, name) = split(text);
        let name = match (kind, name) {
            ("shared", _) | (_, "") => "*".to_owned(),
            ("sysv", key) if !key.contains('*') => format!("0x{:08x}", key_of(key)?),
            // As it is written for `shm_open`.
            ("shm", name) => name.trim_start_matches('/').to_owned(),
            (_, name) => name.to_owned(),
        };
        let whole = match kind {
            "file" => anywhere(&name),
            kind => format!("{kind}:{name}"),
        };
        Pattern::new(&name).ok()?;
        Some(Self {
            kind,
            name,
            whole: Pattern::new(&whole).ok()?,
        })
    }

    /// The name that matches what recordings call so, and nothing else.
    #[must_use]
    pub fn escaped(name: &str) -> String {
        match name.is_empty() {
            true => "*".to_owned(),
            false => Pattern::escape(name),
        }
    }

    /// Whether it names the memory that recordings call so.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.whole.matches(name)
    }

    /// The path or pattern of a file; a relative one is so to the working directory.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        (self.kind == "file").then_some(&*self.name)
    }

    /// The pattern of memory that a program makes itself, with its kind before it, for `fnmatch`.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.kind {
            "file" => format!("file:{}", self.whole.as_str()),
            _ => self.whole.as_str().to_owned(),
        }
    }
}

/// The key of a System V segment, in hexadecimal as `ipcs` shows it.
fn key_of(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The kind, and the rest of the name.
fn split(text: &str) -> (&'static str, &str) {
    let text = text.strip_prefix("file:").unwrap_or(text);
    if let Some(name) = text.strip_prefix(SHARED_MEMORY) {
        return ("shm", name);
    }
    let (before, name) = text.split_once(':').unwrap_or((text, ""));
    match NAMED_KINDS[1..].iter().find(|kind| **kind == before) {
        Some(kind) => (kind, name),
        None => (
            "file",
            text.strip_prefix("file")
                .filter(|rest| rest.is_empty())
                .unwrap_or(text),
        ),
    }
}

/// A pattern for a path as the kernel shows it, which is absolute.
fn anywhere(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    match path.starts_with(['/', '*']) {
        true => path.to_owned(),
        false => format!("*/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_recordings() {
        for (rule, name, matches) in [
            ("/models/a.gguf", "/models/a.gguf", true),
            ("/models/*.gguf", "/models/big/a.gguf", true),
            ("file:a.gguf", "/models/a.gguf", true),
            ("./a.gguf", "/models/a.gguf", true),
            ("file:a.gguf", "/models/aa.gguf", false),
            ("file:*", "/models/a.gguf", true),
            ("shm:Postgre*", "shm:PostgreSQL.1", true),
            ("shm", "shm:x", true),
            ("shm:", "shm:x", true),
            ("shm", "memfd:x", false),
            ("/dev/shm/x", "shm:x", true),
            ("memfd:ram?", "memfd:ram0", true),
            ("sysv:0x0052e2c1", "sysv:0x0052e2c1", true),
            ("sysv:0x1234", "sysv:0x00001234", true),
            ("shm:/buffers", "shm:buffers", true),
            ("shared", "shared:", true),
            ("hugetlb", "hugetlb:", true),
        ] {
            assert_eq!(Named::new(rule).unwrap().matches(name), matches, "{rule} {name}");
        }
        assert_eq!(Named::new("/models/[a"), None);
        assert_eq!(Named::new("sysv:1234"), None);
    }

    #[test]
    fn the_program_s_own_memory_has_a_pattern_with_its_kind() {
        let pattern = |rule: &str| Named::new(rule).unwrap().pattern();
        assert_eq!(pattern("shm:x*"), "shm:x*");
        assert_eq!(pattern("hugetlb"), "hugetlb:*");
        assert_eq!(pattern("/run/x"), "file:/run/x");
        assert_eq!(pattern("x"), "file:*/x");
    }
}
