//! Parses messages of the guest's init on the control channel: lines of text, some followed by raw bytes.

/// A message of the guest's init.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The guest is up; nanoseconds on the guest's clock.
    Ready(u64),
    /// A contiguous range of a node's memory, in the kernel's frame numbers.
    Segment {
        node: u32,
        first: u64,
        pages: u64,
    },
    /// A marked page, by the kernel's number of its frame; in the order in which pages were marked.
    Page {
        node: u32,
        frame: u64,
    },
    Begin(usize),
    /// A run has ended; `status` as a shell reports it.
    End {
        run: usize,
        status: u8,
        nanoseconds: u64,
    },
    /// A slice of a run has ended; the time since the run's beginning.
    Slice {
        run: usize,
        nanoseconds: u64,
    },
    /// The increase of a kernel counter during a run.
    Counter {
        run: usize,
        name: String,
        rise: i64,
    },
    /// A result file of a run.
    File {
        run: usize,
        name: String,
        bytes: Vec<u8>,
    },
    /// A file of sysfs, by its path below `/sys`.
    Capture {
        path: String,
        bytes: Vec<u8>,
    },
    /// A file that the runs left, by its path.
    Brought {
        path: String,
        bytes: Vec<u8>,
    },
    Failed(String),
    Done,
}

/// No line of the guest's init is longer; longer lines are from something else.
const LONGEST_LINE: usize = 4096;

/// Parses the channel incrementally. Skips what it does not recognise: a kernel that is failing may write anything.
#[derive(Debug, Default)]
pub(crate) struct Control {
    line: Vec<u8>,
    /// The line that announced raw bytes, the number of bytes still to come, and the bytes received so far.
    body: Option<(Message, u64)>,
}

impl Control {
    /// Takes the next bytes, which may end anywhere; returns the messages that they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            if let Some((mut message, left)) = self.body.take() {
                let now = left.min(bytes.len() as u64);
                message.append(&bytes[..now as usize]);
                bytes = &bytes[now as usize..];
                if now < left {
                    self.body = Some((message, left - now));
                    return all;
                }
                all.push(message);
            }
            let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                if self.line.len() < LONGEST_LINE {
                    self.line.extend(bytes);
                }
                return all;
            };
            self.line.extend(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            match parse(&String::from_utf8_lossy(&line)) {
                Some((message, 0)) => all.push(message),
                Some(announced) => self.body = Some(announced),
                None => {}
            }
        }
    }
}

impl Message {
    fn append(&mut self, more: &[u8]) {
        if let Self::File { bytes, .. } | Self::Capture { bytes, .. } | Self::Brought { bytes, .. } = self {
            bytes.extend(more);
        }
    }
}

/// The message of a line, and the number of raw bytes that follow it.
fn parse(line: &str) -> Option<(Message, u64)> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let run = || Some(number(0)? as usize);
    let message = match kind {
        "ready" => Message::Ready(number(0)?),
        "segment" => Message::Segment {
            node: number(0)? as u32,
            first: number(1)?,
            pages: number(2)?,
        },
        "page" => Message::Page {
            node: number(0)? as u32,
            frame: number(1)?,
        },
        "begin" => Message::Begin(run()?),
        "end" => Message::End {
            run: run()?,
            status: status(words.get(1)?, number(2)?)?,
            nanoseconds: number(3)?,
        },
        "slice" => Message::Slice {
            run: run()?,
            nanoseconds: number(1)?,
        },
        "vmstat" => Message::Counter {
            run: run()?,
            name: (*words.get(1)?).to_owned(),
            rise: words.get(2)?.parse().ok()?,
        },
        "file" => {
            let (name, bytes) = (*words.get(1)?, Vec::new());
            let name = name.to_owned();
            return Some((
                Message::File {
                    run: run()?,
                    name,
                    bytes,
                },
                number(2)?,
            ));
        }
        "capture" | "brought" => {
            let (path, length) = rest.rsplit_once(' ')?;
            let (path, bytes) = (path.to_owned(), Vec::new());
            let message = match kind {
                "capture" => Message::Capture { path, bytes },
                _ => Message::Brought { path, bytes },
            };
            return Some((message, length.parse().ok()?));
        }
        "failed" => Message::Failed(rest.to_owned()),
        "done" if rest.is_empty() => Message::Done,
        _ => return None,
    };
    Some((message, 0))
}

fn status(how: &str, code: u64) -> Option<u8> {
    match how {
        "exit" => u8::try_from(code).ok(),
        "signal" => u8::try_from(code.checked_add(128)?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAID: &[u8] =
        b"ready 2500000000\nsegment 0 1 131071\npage 0 77\ngarbage \xff\nbegin 0\nslice 0 777\nend 0 signal 9 12345\n\
        vmstat 0 numa_hint_faults -3\nfile 0 objects 9\n12 - 4 7\ncapture devices/system/node/online 4\n0-7\n\
        brought /tmp/a b 3\nx\ny\nfailed no more\ndone\n";

    fn expected() -> Vec<Message> {
        vec![
            Message::Ready(2_500_000_000),
            Message::Segment {
                node: 0,
                first: 1,
                pages: 131_071,
            },
            Message::Page { node: 0, frame: 77 },
            Message::Begin(0),
            Message::Slice {
                run: 0,
                nanoseconds: 777,
            },
            Message::End {
                run: 0,
                status: 137,
                nanoseconds: 12345,
            },
            Message::Counter {
                run: 0,
                name: "numa_hint_faults".into(),
                rise: -3,
            },
            Message::File {
                run: 0,
                name: "objects".into(),
                bytes: b"12 - 4 7\n".into(),
            },
            Message::Capture {
                path: "devices/system/node/online".into(),
                bytes: b"0-7\n".into(),
            },
            Message::Brought {
                path: "/tmp/a b".into(),
                bytes: b"x\ny".into(),
            },
            Message::Failed("no more".into()),
            Message::Done,
        ]
    }

    #[test]
    fn a_file_of_no_bytes_is_one() {
        let said = Control::default().feed(b"file 1 objects 0\ndone\n");
        assert_eq!(said.len(), 2);
        assert_eq!(
            said[0],
            Message::File {
                run: 1,
                name: "objects".into(),
                bytes: Vec::new()
            }
        );
    }

    proptest! {
        #[test]
        fn messages_do_not_depend_on_how_they_come(cuts in proptest::collection::vec(0..SAID.len(), 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().chain([0, SAID.len()]).collect();
            cuts.sort_unstable();
            let mut control = Control::default();
            let said: Vec<Message> = cuts.windows(2).flat_map(|c| control.feed(&SAID[c[0]..c[1]])).collect();
            prop_assert_eq!(said, expected());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500), line in "[a-z]{3,8}( [0-9a-z]{1,20}){0,4}\n") {
            let mut control = Control::default();
            control.feed(&bytes);
            control.feed(b"\n");
            control.feed(line.as_bytes());
        }
    }
}
