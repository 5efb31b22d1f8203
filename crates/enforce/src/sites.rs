//! Resolves the call sites of rules in the actual binary: finds the code ranges of their source frames.

use nodewise_profile::{Frame, Site};
use nodewise_symbols::{CodeRange, Module, base_name};
use std::collections::HashMap;

/// A site of the map, resolved in the binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedSite {
    /// Indices of frames, innermost first; 0 matches any frame that no module has.
    pub frames: Vec<u32>,
    /// Whether the site was resolved by function names only.
    pub by_name: bool,
    /// Number of objects that rules distinguish by sequence; 0 if none.
    pub objects: u32,
}

/// A code range of one module and the frames it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedRange {
    pub module: u32,
    pub start: u64,
    pub end: u64,
    pub frames: Vec<u32>,
}

/// The tables from which the preload turns return addresses into sites.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// For each requested site: `None` where the binary has no such code.
    pub sites: Vec<Option<ResolvedSite>>,
    /// Disjoint code ranges, ascending by module and address.
    pub ranges: Vec<ResolvedRange>,
}

/// What identifies a frame: plain function name, file name and line.
pub(crate) type Key = (String, String, u32);

impl Sites {
    /// Resolves `sites`, in their display form, in `modules`.
    pub(crate) fn resolve(sites: &[String], modules: &[Module]) -> Self {
        let wanted: Vec<Vec<Frame>> = sites.iter().map(|s| trimmed(parse(s))).collect();
        let mut search = Search::new(modules);
        search.by_lines(wanted.iter().flatten());
        let mut found: Vec<_> = wanted.iter().map(|w| search.site(w, false)).collect();
        let missing: Vec<usize> = (0..found.len()).filter(|i| found[*i].is_none()).collect();
        search.by_functions(missing.iter().flat_map(|i| &wanted[*i]));
        for i in missing {
            found[i] = search.site(&functions_only(&wanted[i]), true);
        }
        Self {
            sites: found,
            ranges: search.disjoint(),
        }
    }
}

/// Sort key by source lines, callers first: the order in which a program that makes one object at each site reaches
/// them.
pub(crate) fn order(site: &str) -> Vec<Key> {
    trimmed(parse(site)).iter().rev().map(key).collect()
}

/// Parses the display form of a [`Site`].
fn parse(site: &str) -> Vec<Frame> {
    site.split(" < ").take(Site::DEPTH).map(frame).collect()
}

fn frame(text: &str) -> Frame {
    let located = text.rsplit_once(' ').and_then(|(function, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some(Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line: line.parse().ok()?,
        })
    });
    located.unwrap_or_else(|| Frame {
        function: text.to_owned(),
        ..Frame::default()
    })
}

/// Function and file of our runtime in which threads start; older recordings have that frame at the end of a worker
/// thread's call chain.
const OURS: (&str, &str) = ("run_thread", "threads.c");

/// The part of a call chain that is the same on other hosts: up to `main`, without frames that have no source or belong
/// to our runtime.
fn trimmed(mut frames: Vec<Frame>) -> Vec<Frame> {
    let is_ours = |f: &Frame| (f.function.as_str(), f.file_name()) == OURS;
    if let Some(last) = frames.pop_if(|f| is_ours(f)).filter(|_| frames.is_empty()) {
        frames.push(last); // a function of the program with the same name
    }
    if let Some(main) = frames.iter().position(|f| f.function == "main") {
        frames.truncate(main + 1);
    }
    if frames.iter().any(|f| !f.file.is_empty()) {
        frames.retain(|f| !f.file.is_empty());
    }
    frames
}

fn functions_only(frames: &[Frame]) -> Vec<Frame> {
    frames
        .iter()
        .map(|f| Frame {
            function: f.function.clone(),
            ..Frame::default()
        })
        .collect()
}

fn key(frame: &Frame) -> Key {
    let function = base_name(&frame.function).to_owned();
    (function, frame.file_name().to_owned(), frame.line)
}

struct Search<'a> {
    modules: &'a [Module],
    ids: HashMap<Key, u32>,
    ranges: Vec<ResolvedRange>,
}

impl<'a> Search<'a> {
    fn new(modules: &'a [Module]) -> Self {
        Self {
            modules,
            ids: HashMap::new(),
            ranges: Vec::new(),
        }
    }

    /// Adds the code of frames by function, file and line, or by function for those without a file.
    fn by_lines<'f>(&mut self, frames: impl Iterator<Item = &'f Frame>) {
        let frames: Vec<Frame> = frames.cloned().collect();
        self.add(&frames, |_, _| true);
    }

    /// Adds whole functions, in modules without line tables.
    fn by_functions<'f>(&mut self, frames: impl Iterator<Item = &'f Frame>) {
        let frames: Vec<Frame> = functions_only(&frames.cloned().collect::<Vec<_>>());
        self.add(&frames, |module, range| {
            module
                .frames(range.addresses.start)
                .iter()
                .all(|f| f.file.is_empty())
        });
    }

    fn add(&mut self, frames: &[Frame], accept: impl Fn(&Module, &CodeRange) -> bool) {
        if frames.is_empty() {
            return;
        }
        for (index, module) in self.modules.iter().enumerate() {
            for range in module.ranges_of(frames).into_iter().filter(|r| accept(module, r)) {
                let frames = range.frames.iter().map(|f| self.id(f)).collect();
                let (start, end) = (range.addresses.start, range.addresses.end);
                self.ranges.push(ResolvedRange {
                    module: index as u32,
                    start,
                    end,
                    frames,
                });
            }
        }
    }

    fn id(&mut self, frame: &Frame) -> u32 {
        let next = self.ids.len() as u32 + 1;
        *self.ids.entry(key(frame)).or_insert(next)
    }

    /// The site, if some code begins with its innermost frame; frames that have no code become 0.
    fn site(&self, frames: &[Frame], by_name: bool) -> Option<ResolvedSite> {
        let ids: Vec<u32> = frames
            .iter()
            .map(|f| self.ids.get(&key(f)).copied().unwrap_or(0))
            .collect();
        let known = |ids: &[u32]| {
            let begins = |r: &ResolvedRange| r.frames.iter().zip(ids).all(|(a, b)| a == b);
            self.ranges.iter().any(begins)
        };
        let present = match by_name {
            true => ids.last().is_some_and(|last| *last != 0),
            false => ids.first().is_some_and(|first| *first != 0) && known(&ids),
        };
        present.then_some(ResolvedSite {
            frames: ids,
            by_name,
            objects: 0,
        })
    }

    fn disjoint(mut self) -> Vec<ResolvedRange> {
        self.ranges.sort_by_key(|r| (r.module, r.start, r.end));
        let mut last = (u32::MAX, 0);
        self.ranges.retain(|r| {
            let free = r.module != last.0 || r.start >= last.1;
            if free {
                last = (r.module, r.end);
            }
            free
        });
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(site: &str) -> Vec<String> {
        trimmed(parse(site)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_site_is_read_back_as_displayed() {
        let text = "std::less<int>::operator() map.h:12 < build mesh.c:42 < main mesh.c:90";
        assert_eq!(Site { frames: parse(text) }.to_string(), text);
    }

    #[test]
    fn what_other_hosts_do_not_share_is_left_out() {
        assert_eq!(
            names("f a.c:1 < main a.c:9 < libc.so.6+0x2724a < _start"),
            ["f a.c:1", "main a.c:9"]
        );
        assert_eq!(
            names("operator new(unsigned long) < f a.c:1 < start_thread"),
            ["f a.c:1"]
        );
        assert_eq!(names("helper < main < __libc_start_main"), ["helper", "main"]);
        assert_eq!(
            names("work w.c:7 < worker w.c:14 < run_thread threads.c:265"),
            ["work w.c:7", "worker w.c:14"]
        );
        assert_eq!(names("run_thread threads.c:9"), ["run_thread threads.c:9"]);
    }
}
