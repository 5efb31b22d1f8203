//! Parses the event log of a process image: lines of words, with hexadecimal numbers.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A loaded segment of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub address: u64,
    pub bytes: u64,
    pub writable: bool,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Process {
        brk: u64,
        stack: u64,
    },
    Parent {
        bytes: u64,
        folder: &'a str,
    },
    Module {
        bias: u64,
        segments: Vec<Segment>,
        path: &'a str,
    },
    Thread {
        ordinal: u32,
        start: u64,
    },
    Start {
        ordinal: u32,
        tid: u32,
        stack: u64,
        bytes: u64,
    },
    Tls {
        ordinal: u32,
        address: u64,
        bytes: u64,
        bias: u64,
    },
    /// The counter file `number` belongs to thread `ordinal` from these entries on.
    Counters {
        ordinal: u32,
        number: u32,
        counter: u64,
        touch: u64,
    },
    OpenMp {
        ordinal: u32,
        number: u32,
    },
    /// A thread took a number from the shared counter at this address, by this instruction, for the first or the second
    /// time.
    CounterUse {
        instruction: u32,
        ordinal: u32,
        counter: u64,
        chain: Vec<u64>,
    },
    Region {
        id: u32,
        line: u32,
        function: &'a str,
        file: &'a str,
    },
    Schedule {
        id: u32,
        number: u32,
    },
    Outlined {
        id: u32,
        address: u64,
    },
    Heap {
        address: u64,
        bytes: u64,
        mapped: u64,
        ordinal: u32,
        chain: Vec<u64>,
    },
    /// An object was allocated again at the same address, or has grown.
    Again {
        before: u64,
        address: u64,
        bytes: u64,
        mapped: u64,
    },
    /// The pool entry that counts repeated allocations at an address.
    Repeats {
        number: usize,
        address: u64,
    },
    Map {
        address: u64,
        bytes: u64,
        ordinal: u32,
        chain: Vec<u64>,
        path: Option<&'a str>,
    },
    Gone {
        address: u64,
        bytes: u64,
    },
    Arena {
        address: u64,
        bytes: u64,
    },
}

impl<'a> Event<'a> {
    /// Parses a line; `None` if it is damaged or from a newer runtime.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        // `module` and `map` end with ` = path`; the path may contain anything.
        let (numbers, path) = match rest.split_once(" = ") {
            Some((numbers, path)) => (numbers, Some(path)),
            None => (rest, None),
        };
        match word {
            "parent" | "region" => Self::named(word, rest),
            _ => {
                let numbers: Option<Vec<u64>> = numbers
                    .split(' ')
                    .map(|w| u64::from_str_radix(w, 16).ok())
                    .collect();
                Self::numeric(word, &numbers?, path)
            }
        }
    }

    fn named(word: &str, rest: &'a str) -> Option<Self> {
        let mut words = rest.splitn(if word == "parent" { 2 } else { 4 }, ' ');
        let first = u64::from_str_radix(words.next()?, 16).ok()?;
        let second = words.next()?;
        if word == "parent" {
            return Some(Self::Parent {
                bytes: first,
                folder: second,
            });
        }
        Some(Self::Region {
            id: u32::try_from(first).ok()?,
            line: u32::from_str_radix(second, 16).ok()?,
            function: words.next()?,
            file: words.next().unwrap_or_default(),
        })
    }

    fn numeric(word: &str, numbers: &[u64], path: Option<&'a str>) -> Option<Self> {
        let small = |n: u64| u32::try_from(n).ok();
        // A thread number larger than a profile can have comes from a damaged line; tables would be allocated up to it.
        let thread = |n: u64| small(n).filter(|_| n < nodewise_store::THREADS);
        Some(match (word, numbers) {
            ("process", &[_, _, _, brk, stack]) => Self::Process { brk, stack },
            ("module", &[bias, ref segments @ ..]) => Self::Module {
                bias,
                segments: segments.chunks_exact(3).map(segment).collect(),
                path: path?,
            },
            ("thread", &[ordinal, _, start]) => Self::Thread {
                ordinal: thread(ordinal)?,
                start,
            },
            ("start", &[ordinal, tid, stack, bytes]) => Self::Start {
                ordinal: thread(ordinal)?,
                tid: small(tid)?,
                stack,
                bytes,
            },
            ("tls", &[ordinal, address, bytes, bias]) => Self::Tls {
                ordinal: thread(ordinal)?,
                address,
                bytes,
                bias,
            },
            ("counters", &[ordinal, number, counter, touch]) => Self::Counters {
                ordinal: thread(ordinal)?,
                number: small(number)?,
                counter,
                touch,
            },
            ("schedule", &[id, number]) => Self::Schedule {
                id: small(id)?,
                number: small(number)?,
            },
            ("outlined", &[id, address]) => Self::Outlined {
                id: small(id)?,
                address,
            },
            ("openmp", &[ordinal, number]) => Self::OpenMp {
                ordinal: thread(ordinal)?,
                number: small(number)?,
            },
            ("ticket", &[instruction, ordinal, counter, ref chain @ ..]) => Self::CounterUse {
                instruction: small(instruction)?,
                counter,
                ordinal: thread(ordinal)?,
                chain: chain.to_vec(),
            },
            ("heap", &[address, bytes, mapped, ordinal, ref chain @ ..]) => Self::Heap {
                address,
                bytes,
                mapped,
                ordinal: thread(ordinal)?,
                chain: chain.to_vec(),
            },
            ("again", &[before, address, bytes, mapped]) => Self::Again {
                before,
                address,
                bytes,
                mapped,
            },
            ("repeats", &[number, address]) => Self::Repeats {
                number: usize::try_from(number).ok()?,
                address,
            },
            ("map", &[address, bytes, ordinal, ref chain @ ..]) => Self::Map {
                address,
                bytes,
                ordinal: thread(ordinal)?,
                chain: chain.to_vec(),
                path,
            },
            ("free" | "unmap", &[address, bytes]) => Self::Gone { address, bytes },
            ("arena", &[address, bytes]) => Self::Arena { address, bytes },
            _ => return None,
        })
    }
}

fn segment(words: &[u64]) -> Segment {
    const PF_W: u64 = 2;
    Segment {
        address: words[0],
        bytes: words[1],
        writable: words[2] & PF_W != 0,
    }
}

/// Reads the log from byte `from`, at most up to `limit`, and calls `line` with each complete line. Returns the
/// position where the next call continues.
///
/// # Errors
/// The file cannot be read. A file that does not exist yet counts as empty.
pub fn read(path: &Path, from: u64, limit: u64, mut line: impl FnMut(&str)) -> io::Result<u64> {
    const CHUNK: usize = 1 << 16;
    let file = match nodewise_input::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(from),
        Err(error) => return Err(error),
    };
    let (mut at, mut rest) = (from, Vec::new());
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read_at(&mut chunk, at + rest.len() as u64)?;
        rest.extend_from_slice(&chunk[..read]);
        let Some(end) = rest.iter().rposition(|&b| b == b'\n').map(|i| i + 1) else {
            return Ok(at);
        };
        for text in rest[..end].split_inclusive(|&b| b == b'\n') {
            if at + text.len() as u64 > limit {
                return Ok(at);
            }
            line(&String::from_utf8_lossy(&text[..text.len() - 1]));
            at += text.len() as u64;
        }
        rest.drain(..end);
        if read == 0 {
            return Ok(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_runtime_writes_them() {
        assert_eq!(
            Event::parse("module 400000 400000 788 4 401000 231 6 = /tmp/my app = x"),
            Some(Event::Module {
                bias: 0x40_0000,
                segments: vec![
                    Segment {
                        address: 0x40_0000,
                        bytes: 0x788,
                        writable: false
                    },
                    Segment {
                        address: 0x40_1000,
                        bytes: 0x231,
                        writable: true
                    },
                ],
                path: "/tmp/my app = x",
            })
        );
        assert_eq!(
            Event::parse("heap 200000000000 100000 100000 0 5586b75b41ab 7f"),
            Some(Event::Heap {
                address: 0x2000_0000_0000,
                bytes: 1 << 20,
                mapped: 1 << 20,
                ordinal: 0,
                chain: vec![0x5586_b75b_41ab, 0x7f],
            })
        );
        assert_eq!(
            Event::parse("region 1 2a main.omp_outlined /src/a b.c"),
            Some(Event::Region {
                id: 1,
                line: 42,
                function: "main.omp_outlined",
                file: "/src/a b.c"
            })
        );
        assert_eq!(
            Event::parse("parent 3e4 29332-0"),
            Some(Event::Parent {
                bytes: 996,
                folder: "29332-0"
            })
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for line in [
            "",
            "heap",
            "heap x",
            "heap 1 2",
            "region 1",
            "later 1 2 3",
            "module 1 2 3 4",
            "parent",
            "openmp 100000 0",
            "heap 200000000000 100000 100000 ffffffff 7f",
        ] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }

    #[test]
    fn an_unfinished_line_is_left_for_later() {
        let path = std::env::temp_dir().join(format!("nodewise-events-{}", std::process::id()));
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let mut lines = Vec::new();
        assert_eq!(read(&path, 0, u64::MAX, |l| lines.push(l.to_owned())).unwrap(), 8);
        assert_eq!(read(&path, 4, 7, |l| lines.push(l.to_owned())).unwrap(), 4);
        assert_eq!(lines, ["one", "two"]);
        std::fs::remove_file(path).unwrap();
    }
}
