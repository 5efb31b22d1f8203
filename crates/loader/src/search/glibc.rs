//! Library search of glibc's `ld.so`, in this order: `DT_RPATH` of the requesting file and of its requesters,
//! `LD_LIBRARY_PATH`, `DT_RUNPATH` of the requesting file, the cache, the default folders. In each folder, builds for
//! this processor (`glibc-hwcaps`) come first.

use super::tokens::{Token, folders, replaced};
use super::{Environment, Loaded, Search};
use crate::Program;
use crate::cache::{self, Cache};
use crate::target::Target;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub(super) struct Glibc {
    library_path: Option<OsString>,
    cache: Cache,
    target: Option<&'static Target>,
    /// Names of the loader itself.
    names: Vec<OsString>,
    /// Subfolders of `glibc-hwcaps` that this processor supports, the most specific first.
    builds: Vec<&'static str>,
}

impl Glibc {
    pub fn new(program: &Program, environment: &Environment) -> Self {
        let loader = program.interpreter.as_deref();
        let file_name = loader.and_then(Path::file_name).map(OsStr::to_owned);
        let own_name = loader.and_then(|l| Program::open(l).ok()?.own_name);
        Self {
            library_path: environment.library_path.clone().filter(|p| !p.is_empty()),
            cache: Cache::of(std::fs::read(cache::PATH).unwrap_or_default()),
            target: program.target(),
            names: file_name.into_iter().chain(own_name).collect(),
            builds: if program.is_native() { builds() } else { Vec::new() },
        }
    }

    /// Searches the folders of `list`, a search path of the file `by`, whose tokens are replaced first.
    fn in_list(
        &self,
        list: &OsStr,
        by: &Loaded,
        name: &OsStr,
        fits: &dyn Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        let expanded = self.expanded(list, by);
        // If $LIB may stand for several folders, all of them are tried before the next part of the list.
        let lists: Vec<Vec<&OsStr>> = expanded.iter().map(|l| folders(l, b":;").collect()).collect();
        let places = 0..lists.first().map_or(0, Vec::len);
        places
            .flat_map(|i| lists.iter().filter_map(move |l| l.get(i).copied()))
            .find_map(|folder| self.in_folder(Path::new(folder), name, fits))
    }

    fn in_folder(&self, folder: &Path, name: &OsStr, fits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        // An empty part of a list stands for the current folder.
        let hardware = folder.join("glibc-hwcaps");
        let built = self.builds.iter().map(|b| hardware.join(b).join(name));
        let built = if hardware.is_dir() {
            built.collect()
        } else {
            Vec::new()
        };
        built.into_iter().chain([folder.join(name)]).find(|p| fits(p))
    }

    /// Searches `DT_RPATH` of the requesting file, then of its requesters, and finally of the program.
    fn in_old_run_paths(
        &self,
        name: &OsStr,
        loaded: &[Loaded],
        by: usize,
        fits: &dyn Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        if loaded[by].program.run_path.is_some() {
            return None;
        }
        std::iter::successors(Some(by), |at| loaded[*at].by).find_map(|at| {
            let list = loaded[at].program.old_run_path.as_deref()?;
            self.in_list(list, &loaded[at], name, fits)
        })
    }

    fn default_folders(&self) -> impl Iterator<Item = PathBuf> {
        let triplet = self.target.map_or("", |t| t.triplet);
        let debian = ["/lib", "/usr/lib"].map(|f| Path::new(f).join(triplet));
        let others = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
        debian.into_iter().chain(others)
    }
}

impl Search for Glibc {
    fn find(
        &self,
        name: &OsStr,
        loaded: &[Loaded],
        by: usize,
        fits: &dyn Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        let user = &loaded[by];
        let listed = |list: Option<&OsStr>, of: &Loaded| list.and_then(|l| self.in_list(l, of, name, fits));
        let cached = || {
            let found = self.cache.find(name, self.target?.cached, &self.builds)?;
            let default = |p: &PathBuf| self.default_folders().any(|f| p.starts_with(f));
            let allowed = !(user.program.no_default_folders && default(&found));
            (allowed && fits(&found)).then_some(found)
        };
        let default = || {
            let mut allowed = self
                .default_folders()
                .filter(|_| !user.program.no_default_folders);
            allowed.find_map(|folder| self.in_folder(&folder, name, fits))
        };
        self.in_old_run_paths(name, loaded, by, fits)
            .or_else(|| listed(self.library_path.as_deref(), &loaded[0]))
            .or_else(|| listed(user.program.run_path.as_deref(), user))
            .or_else(cached)
            .or_else(default)
    }

    fn is_itself(&self, name: &OsStr) -> bool {
        self.names.iter().any(|n| n == name)
    }

    fn expanded(&self, text: &OsStr, by: &Loaded) -> Vec<OsString> {
        let origin = by.path.parent().unwrap_or(Path::new("/")).as_os_str();
        let debian = format!("lib/{}", self.target.map_or("", |t| t.triplet));
        let platform = OsStr::new(std::env::consts::ARCH);
        let meant = [debian.as_str(), "lib64", "lib"].map(|lib| {
            let tokens: [Token; 3] = [("ORIGIN", origin), ("LIB", lib.as_ref()), ("PLATFORM", platform)];
            replaced(text, &tokens)
        });
        let mut meant = meant.to_vec();
        meant.dedup();
        meant
    }
}

/// The subfolders of `glibc-hwcaps` with builds that this processor can run, the most specific first.
fn builds() -> Vec<&'static str> {
    let mut builds = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! has {
            ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
        }
        let second = has!("cmpxchg16b" "popcnt" "sse3" "sse4.1" "sse4.2" "ssse3");
        let third = second && has!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe" "xsave");
        let fourth = third && has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
        let known = [(fourth, "x86-64-v4"), (third, "x86-64-v3"), (second, "x86-64-v2")];
        builds.extend(known.iter().filter(|(runs, _)| *runs).map(|(_, name)| *name));
    }
    builds
}
