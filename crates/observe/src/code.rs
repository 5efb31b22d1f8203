//! Resolves addresses of a running process to source frames, in the modules that it loaded.

use nodewise_linux::clock;
use nodewise_profile::{Frame, Schedule, Site};
use nodewise_symbols::{Module, Named, Variable, named_at};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// A module that a process image has loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The load bias: subtract it from an address to get the address as linked.
    pub bias: u64,
    /// Lowest address, and the address after the highest one.
    pub start: u64,
    pub end: u64,
    /// Index of the module's file in the [`Library`].
    pub file: usize,
}

/// The module files of all process images; each is read once, when it is first needed.
#[derive(Default)]
pub struct Library {
    files: Vec<ModuleFile>,
    by_path: HashMap<String, usize>,
    sources: HashMap<String, Option<Vec<String>>>,
    /// The places that names of allocations come from: the frame, and the column in its line.
    origins: Vec<(Frame, u32)>,
    by_origin: HashMap<(Frame, u32), u32>,
    reading: Duration,
}

struct ModuleFile {
    path: String,
    module: Option<Option<Module>>,
    /// Frames with their columns, by address as linked.
    frames: HashMap<u64, Vec<(Frame, u32)>>,
    variables: Option<Vec<Variable>>,
}

impl ModuleFile {
    /// Reads the module unless that was done; adds the CPU time that it takes to `reading`.
    fn open(&mut self, reading: &mut Duration) {
        if self.module.is_none() {
            let began = clock::own_cpu_time();
            self.module = Some(Module::open(Path::new(&self.path)).ok());
            *reading += clock::own_cpu_time() - began;
        }
    }
}

impl Library {
    /// The index of the module file at `path`; adds it if it is new.
    pub fn file(&mut self, path: &str) -> usize {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let file = ModuleFile {
            path: path.to_owned(),
            module: None,
            frames: HashMap::new(),
            variables: None,
        };
        self.files.push(file);
        self.by_path.insert(path.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    /// Whether a module of this file name was seen.
    pub fn has(&self, name: &str) -> bool {
        (0..self.files.len()).any(|file| self.name(file) == name)
    }

    /// The module's file name.
    pub fn name(&self, file: usize) -> &str {
        let path = &self.files[file].path;
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The module's variables, ascending by address.
    pub fn variables(&mut self, file: usize) -> &[Variable] {
        let file = &mut self.files[file];
        file.open(&mut self.reading);
        let began = clock::own_cpu_time();
        let module = file.module.as_ref().and_then(Option::as_ref);
        let variables = file
            .variables
            .get_or_insert_with(|| module.map(Module::variables).unwrap_or_default());
        self.reading += clock::own_cpu_time() - began;
        variables
    }

    /// The frames at an address of a process with these modules, innermost first.
    pub fn frames(&mut self, modules: &[Loaded], address: u64) -> Vec<Frame> {
        let found = self.frames_with_columns(modules, address);
        found.into_iter().map(|f| f.0).collect()
    }

    fn frames_with_columns(&mut self, modules: &[Loaded], address: u64) -> Vec<(Frame, u32)> {
        let Some(loaded) = loaded_at(modules, address) else {
            let frame = Frame {
                function: format!("{address:#x}"),
                ..Frame::default()
            };
            return vec![(frame, 0)];
        };
        let own = address - loaded.bias;
        let name = self.name(loaded.file).to_owned();
        let file = &mut self.files[loaded.file];
        file.open(&mut self.reading);
        let module = file.module.as_ref().and_then(Option::as_ref);
        file.frames
            .entry(own)
            .or_insert_with(|| match module {
                Some(module) => module.frames_with_columns(own),
                None => {
                    let frame = Frame {
                        function: format!("{name}+{own:#x}"),
                        ..Frame::default()
                    };
                    vec![(frame, 0)]
                }
            })
            .clone()
    }

    /// The site of a call chain, given as return addresses, innermost first. Frames without source (the C library,
    /// `operator new`, OpenMP) are left out unless there are no others, because they differ between hosts and rules
    /// must not depend on them. Frames of our libraries are left out too: they are in the chain of each thread that the
    /// runtime starts and of each call that it interposes, but not in the chains of the uninstrumented program. A site
    /// ends with `main` or the body of a parallel region, beyond which the master thread's chain differs from those of
    /// its team.
    pub fn site(&mut self, modules: &[Loaded], chain: &[u64]) -> Site {
        self.allocation_site(modules, chain).0
    }

    /// As [`Library::site`], with the number of the place that the name comes from, for [`Library::object_name`]; 0 if
    /// that is unknown. It distinguishes objects that are allocated on the same line. That line may be further out than
    /// the frames of the site, beyond frames of the language's library.
    pub fn allocation_site(&mut self, modules: &[Loaded], chain: &[u64]) -> (Site, u32) {
        let mut all: Vec<(Frame, u32)> = Vec::new();
        for &pc in chain {
            let call = pc.saturating_sub(1);
            if self.is_ours(modules, call) {
                continue;
            }
            all.extend(self.frames_with_columns(modules, call));
            if self.read_and_ask_outlined(modules, call) {
                break;
            }
        }
        let sourced = all.iter().any(|f| !f.0.file.is_empty());
        all.retain(|f| !sourced || !f.0.file.is_empty());
        let main = all.iter().position(|f| f.0.function == "main");
        all.truncate(main.map_or(all.len(), |i| i + 1));
        let named = all.iter().find(|f| !is_allocator(&f.0)).or(all.first()).cloned();
        let origin = named.map_or(0, |named| self.origin(named));
        let frames = all.into_iter().map(|f| f.0).take(Site::DEPTH).collect();
        (Site { frames }, origin)
    }

    /// The number of a place that a name comes from; numbers start at 1.
    fn origin(&mut self, named: (Frame, u32)) -> u32 {
        let origins = &mut self.origins;
        *self.by_origin.entry(named).or_insert_with_key(|named| {
            origins.push(named.clone());
            origins.len() as u32
        })
    }

    /// The site of one access, for display: frames of the language's own library are left out unless there are no
    /// others. An access by a call that the runtime interposes (such as `read` into a buffer) has no site, because the
    /// address is in our library.
    pub fn touch_site(&mut self, modules: &[Loaded], code: u64) -> Site {
        if self.is_ours(modules, code.saturating_sub(1)) {
            return Site::default();
        }
        let mut frames = self.frames(modules, code.saturating_sub(1));
        if frames.iter().any(|f| !is_library(f)) {
            frames.retain(|f| !is_library(f));
        }
        frames.truncate(Site::DEPTH);
        Site { frames }
    }

    /// Whether an address is in one of the libraries that we load into the program; libnodewise counts as the program's
    /// own.
    fn is_ours(&self, modules: &[Loaded], address: u64) -> bool {
        loaded_at(modules, address).is_some_and(|m| self.name(m.file).starts_with("libnodewise-"))
    }

    fn read_and_ask_outlined(&mut self, modules: &[Loaded], address: u64) -> bool {
        loaded_at(modules, address).is_some_and(|l| {
            let module = self.module(l.file);
            module.is_some_and(|m| m.is_outlined(address - l.bias))
        })
    }

    /// The schedule by which the outlined function at an address divides its work among threads.
    pub fn schedule(&mut self, modules: &[Loaded], address: u64) -> Option<Schedule> {
        let loaded = loaded_at(modules, address)?;
        self.module(loaded.file)?.schedule(address - loaded.bias)
    }

    /// The module, read when it is first needed; `None` if it cannot be read.
    pub fn module(&mut self, file: usize) -> Option<&Module> {
        let file = &mut self.files[file];
        file.open(&mut self.reading);
        file.module.as_ref()?.as_ref()
    }

    /// CPU time that reading modules took since the last call.
    pub fn take_reading(&mut self) -> Duration {
        std::mem::take(&mut self.reading)
    }

    /// The name of an object: the variable it is assigned to, else the function that allocated it. Frames of allocation
    /// helpers are skipped. `origin` comes from [`Library::allocation_site`].
    pub fn object_name(&mut self, origin: u32) -> String {
        let origin = (origin as usize).checked_sub(1).and_then(|i| self.origins.get(i));
        let Some((frame, column)) = origin.cloned() else {
            return "heap".to_owned();
        };
        self.variable_at(&frame, column)
            .unwrap_or_else(|| match frame.line {
                0 => short(&frame.function).to_owned(),
                line if is_initialiser(&frame.function) => {
                    format!("static initialiser at {}:{line}", frame.file_name())
                }
                _ => short(&frame.function).to_owned(),
            })
    }

    /// The variable to which a statement assigns its allocation; the statement may begin up to three lines above.
    fn variable_at(&mut self, frame: &Frame, column: u32) -> Option<String> {
        let lines = self
            .sources
            .entry(frame.file.clone())
            .or_insert_with(|| {
                let text = std::fs::read(&frame.file).ok()?;
                Some(
                    String::from_utf8_lossy(&text)
                        .lines()
                        .map(str::to_owned)
                        .collect(),
                )
            })
            .as_ref()?;
        let last = (frame.line as usize).checked_sub(1)?;
        for (above, line) in (0..=last).rev().take(4).map(|i| lines.get(i)).enumerate() {
            let line = line?;
            if above > 0 && line.trim_end().ends_with([';', '{', '}']) {
                return None;
            }
            if line.trim_start().starts_with('#') {
                continue;
            }
            // On a line above, the continued statement is at the end of the line.
            let column = if above > 0 {
                line.len() + 1
            } else {
                column as usize
            };
            match named_at(line, column, &frame.function, is_initialiser(&frame.function)) {
                Named::Variable(name) => return Some(name),
                Named::Several => return None,
                Named::Nothing => {}
            }
        }
        None
    }
}

/// The module at an address; if several were loaded there in turn, the last one.
fn loaded_at(modules: &[Loaded], address: u64) -> Option<&Loaded> {
    modules.iter().rev().find(|m| (m.start..m.end).contains(&address))
}

/// Whether the code came with the compiler, or has no source.
fn is_library(frame: &Frame) -> bool {
    frame.file.is_empty() || frame.is_library()
}

/// Whether a function initialises objects at file scope: compilers make it for constructors that run before `main`.
fn is_initialiser(function: &str) -> bool {
    [
        "__cxx_global",
        "__static_initialization_and_destruction",
        "_GLOBAL__",
    ]
    .iter()
    .any(|p| function.starts_with(p))
}

fn is_allocator(frame: &Frame) -> bool {
    is_library(frame) || frame.function.to_ascii_lowercase().contains("alloc")
}

/// A demangled name without return type and parameters: `std::make_unique<int []>` for `std::unique_ptr<int [], D>
/// std::make_unique<int []>(unsigned long)`.
fn short(function: &str) -> &str {
    let name = &function[..parameters(function).unwrap_or(function.len())];
    // The rest belongs to the operator's name: `operator new`, `operator<`.
    let plain = name.find("operator").unwrap_or(name.len());
    let (mut depth, mut start) = (0i32, 0);
    for (i, c) in name[..plain].char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            ' ' if depth == 0 && !name[i + 1..].starts_with("const") => start = i + 1,
            _ => {}
        }
    }
    let short = name[start..].trim();
    if short.is_empty() { function } else { short }
}

/// Where the last parenthesised list begins, if what follows it can only follow parameters.
fn parameters(function: &str) -> Option<usize> {
    let end = function.rfind(')')?;
    let after = &function[end + 1..];
    if !(after.is_empty() || after.starts_with([' ', '['])) {
        return None;
    }
    let mut depth = 0;
    function[..=end].char_indices().rev().find_map(|(i, c)| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        (depth == 0).then_some(i)
    })
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_have_neither_return_type_nor_parameters() {
        for (function, name) in [
            ("main", "main"),
            ("grid::solve(double, int) const", "grid::solve"),
            (
                "std::unique_ptr<int [], std::default_delete<int []> > std::make_unique<int []>(unsigned long)",
                "std::make_unique<int []>",
            ),
            ("(anonymous namespace)::fill(int)", "(anonymous namespace)::fill"),
            ("(anonymous namespace)::fill", "(anonymous namespace)::fill"),
            ("void each<int>(void (*)(int))", "each<int>"),
            ("pool::operator()(unsigned long)", "pool::operator()"),
            ("operator new(unsigned long)", "operator new"),
            (
                "main::{lambda(int)#1}::operator()(int) const",
                "main::{lambda(int)#1}::operator()",
            ),
            ("work::{lambda(int)#1}", "work::{lambda(int)#1}"),
        ] {
            assert_eq!(short(function), name);
        }
    }
}
