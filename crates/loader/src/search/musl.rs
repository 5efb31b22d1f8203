//! Library search of musl's loader: `LD_LIBRARY_PATH`, the run paths of the requesting file and of its requesters,
//! and the folders of its configuration file. The C library is the loader itself.

use super::tokens::{folders, replaced};
use super::{Environment, Loaded, Search};
use crate::Program;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The search path if there is no configuration file.
const DEFAULT: &str = "/lib:/usr/local/lib:/usr/lib";
/// Libraries that the loader itself provides, without `lib` and without the suffix.
const ITS_OWN: [&str; 7] = ["c", "pthread", "rt", "m", "dl", "util", "xnet"];

pub(super) struct Musl {
    library_path: Option<OsString>,
    configured: OsString,
    name: Option<OsString>,
}

impl Musl {
    pub fn new(program: &Program, environment: &Environment) -> Self {
        let loader = program.interpreter.as_deref();
        // `etc` is in the parent of the loader's folder.
        let root = loader.and_then(|l| l.parent()?.parent());
        let name = format!("etc/ld-musl-{}.path", program.target().map_or("", |t| t.musl));
        let file = root.unwrap_or(Path::new("/")).join(name);
        let read = std::fs::read(file).ok();
        Self {
            library_path: environment.library_path.clone(),
            configured: read.map_or_else(|| DEFAULT.into(), |bytes| OsStr::from_bytes(&bytes).to_owned()),
            name: loader.and_then(Path::file_name).map(OsStr::to_owned),
        }
    }
}

impl Search for Musl {
    fn find(
        &self,
        name: &OsStr,
        loaded: &[Loaded],
        by: usize,
        fits: &dyn Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        let in_list = |list: &OsStr| {
            let mut named = folders(list, b":\n").filter(|f| !f.is_empty());
            named.find_map(|folder| Some(Path::new(folder).join(name)).filter(|p| fits(p)))
        };
        let run_path = |at: usize| {
            let program = &loaded[at].program;
            let list = program.run_path.as_ref().or(program.old_run_path.as_ref())?;
            self.expanded(list, &loaded[at]).iter().find_map(|l| in_list(l))
        };
        self.library_path
            .as_deref()
            .and_then(in_list)
            .or_else(|| std::iter::successors(Some(by), |at| loaded[*at].by).find_map(run_path))
            .or_else(|| in_list(&self.configured))
    }

    fn is_itself(&self, name: &OsStr) -> bool {
        let reserved = |name: &OsStr| {
            let rest = name.to_str()?.strip_prefix("lib")?;
            Some(ITS_OWN.contains(&rest.split_once('.')?.0))
        };
        self.name.as_deref() == Some(name) || reserved(name).unwrap_or(false)
    }

    fn expanded(&self, text: &OsStr, by: &Loaded) -> Vec<OsString> {
        let origin = by.path.parent().unwrap_or(Path::new("/")).as_os_str();
        vec![replaced(text, &[("ORIGIN", origin)])]
    }
}
