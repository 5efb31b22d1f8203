//! Lists the libraries that a program's dynamic loader maps at start-up, in the loader's order.

mod glibc;
mod musl;
mod tokens;

use crate::Program;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Environment variables that a loader evaluates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `LD_LIBRARY_PATH`, if set.
    pub library_path: Option<OsString>,
    /// Value of `LD_PRELOAD`, if set.
    pub preload: Option<OsString>,
}

/// The libraries that are mapped when a program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// Paths of the libraries, in the order in which they are mapped; without the loader.
    pub found: Vec<PathBuf>,
    /// Libraries that the loader would not find, so that the program would not start.
    pub missing: Vec<Missing>,
}

/// A library that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name of the library in the file that needs it.
    pub name: OsString,
    /// The file that needs the library.
    pub by: PathBuf,
}

/// A mapped file, with the file that requested it first.
struct Loaded {
    path: PathBuf,
    program: Program,
    by: Option<usize>,
}

/// The rules by which the loader of a C library searches for libraries.
trait Search {
    /// The path of the library `name`, a name without a folder, which the file `by` of `loaded` requests. Only files
    /// for which `fits` returns true are accepted.
    fn find(
        &self,
        name: &OsStr,
        loaded: &[Loaded],
        by: usize,
        fits: &dyn Fn(&Path) -> bool,
    ) -> Option<PathBuf>;
    /// Whether `name` is the loader itself.
    fn is_itself(&self, name: &OsStr) -> bool;
    /// Replaces tokens such as `$ORIGIN` in a name with a folder; returns all paths that it may stand for.
    fn expanded(&self, name: &OsStr, by: &Loaded) -> Vec<OsString>;
}

impl Environment {
    /// Takes the variables that a loader evaluates from an environment.
    #[must_use]
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            match name.as_bytes() {
                b"LD_LIBRARY_PATH" => environment.library_path = Some(value),
                b"LD_PRELOAD" => environment.preload = Some(value),
                _ => {}
            }
        }
        environment
    }
}

/// The libraries that are mapped when the program or library at `path` is started. The search follows musl's rules if
/// the file's loader is musl's, else glibc's rules.
///
/// # Errors
/// The file cannot be read, or is not an ELF file.
pub fn libraries(path: &Path, environment: &Environment) -> io::Result<Libraries> {
    let program = Program::open(path)?;
    if !program.is_dynamic() || program.target().is_none() {
        return Ok(Libraries::default());
    }
    let preloads = preloads(environment);
    let search: Box<dyn Search> = if program.is_musl() {
        Box::new(musl::Musl::new(&program, environment))
    } else {
        Box::new(glibc::Glibc::new(&program, environment))
    };
    let own = Loaded {
        path: path.canonicalize()?,
        program,
        by: None,
    };
    Ok(Closure::new(search.as_ref(), own).all(&preloads))
}

/// The libraries named by `LD_PRELOAD`, which are mapped before all others. `/etc/ld.so.preload` is not read.
fn preloads(environment: &Environment) -> Vec<OsString> {
    let variable = environment.preload.as_deref().unwrap_or_default();
    let separated = variable.as_bytes().split(|b| [b':', b' '].contains(b));
    let names = separated.filter(|n| !n.is_empty());
    names.map(|n| OsStr::from_bytes(n).to_owned()).collect()
}

/// The files mapped so far, with the names under which they are known.
struct Closure<'s> {
    search: &'s dyn Search,
    loaded: Vec<Loaded>,
    by_name: HashMap<OsString, usize>,
    by_file: HashMap<(u64, u64), usize>,
    missing: Vec<Missing>,
}

impl<'s> Closure<'s> {
    fn new(search: &'s dyn Search, own: Loaded) -> Self {
        Self {
            search,
            loaded: vec![own],
            by_name: HashMap::new(),
            by_file: HashMap::new(),
            missing: Vec::new(),
        }
    }

    fn all(mut self, preloads: &[OsString]) -> Libraries {
        for name in preloads {
            // A library that cannot be preloaded is skipped, as by the loader.
            self.take(name, 0);
        }
        let mut waiting: VecDeque<usize> = (0..self.loaded.len()).collect();
        while let Some(user) = waiting.pop_front() {
            for name in self.loaded[user].program.needed.clone() {
                let before = self.loaded.len();
                if !self.take(&name, user) {
                    let by = self.loaded[user].path.clone();
                    self.missing.push(Missing { name, by });
                }
                waiting.extend(before..self.loaded.len());
            }
        }
        Libraries {
            found: self.loaded.drain(1..).map(|l| l.path).collect(),
            missing: self.missing,
        }
    }

    /// Maps the library `name` for the file `by`, unless it is mapped already. Returns whether it is mapped afterwards.
    fn take(&mut self, name: &OsStr, by: usize) -> bool {
        if self.by_name.contains_key(name) || self.search.is_itself(name) {
            return true;
        }
        let own = &self.loaded[0].program;
        // `fits` stores the program that it has read, because the search ends at the first file that fits.
        let read = RefCell::new(None);
        let fits = |path: &Path| {
            let alike = |p: &Program| p.class == own.class && p.machine == own.machine;
            let program = Program::open(path).ok().filter(alike);
            let fits = program.is_some();
            read.replace(program);
            fits
        };
        let found = if name.as_bytes().contains(&b'/') {
            let expanded = self.search.expanded(name, &self.loaded[by]).into_iter();
            expanded.map(PathBuf::from).find(|p| fits(p))
        } else {
            self.search.find(name, &self.loaded, by, &fits)
        };
        let Some((path, program)) = found.zip(read.take()) else {
            return false;
        };
        let next = self.loaded.len();
        let file = path.metadata().map(|m| (m.dev(), m.ino())).ok();
        let known = file.and_then(|file| self.by_file.get(&file).copied());
        let at = known.unwrap_or(next);
        self.by_name.insert(name.to_owned(), at);
        self.by_file.extend(file.map(|file| (file, at)));
        if known.is_none() {
            if let Some(own_name) = &program.own_name {
                self.by_name.entry(own_name.clone()).or_insert(at);
            }
            let by = Some(by);
            self.loaded.push(Loaded { path, program, by });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_brings_its_c_library_and_not_its_loader() {
        let own = std::env::current_exe().unwrap();
        let libraries = libraries(&own, &Environment::default()).unwrap();
        assert_eq!(libraries.missing, []);
        let named = |name: &str| libraries.found.iter().any(|l| l.ends_with(name));
        assert!(
            named("libc.so.6") && !named("ld-linux-x86-64.so.2"),
            "{libraries:?}"
        );
    }

    #[test]
    fn variables_are_taken_by_name() {
        let variables = [("LD_PRELOAD", "a.so b.so:/c/d.so"), ("PATH", "/bin")];
        let environment = Environment::of(variables.map(|(n, v)| (n.into(), v.into())));
        assert_eq!(preloads(&environment), ["a.so", "b.so", "/c/d.so"]);
        assert_eq!(environment.library_path, None);
    }
}
