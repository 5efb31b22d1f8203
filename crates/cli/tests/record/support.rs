//! Compiles small programs with `nodewise-cc`, records them, reads the profiles back.

use nodewise_profile::{Access, AccessSource, ObjectKind, Profile};
use nodewise_store::Reader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The command under test, and the wrappers next to it.
pub const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

/// A folder of the test's own, empty.
pub fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiles a program of `programs/` with the given wrapper and flags.
pub fn build(folder: &Path, wrapper: &str, sources: &[&str], output: &str, flags: &[&str]) -> PathBuf {
    let wrapper = Path::new(NODEWISE).with_file_name(wrapper);
    assert!(
        wrapper.exists(),
        "{} is missing: run `make build` first",
        wrapper.display()
    );
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs");
    let output = folder.join(output);
    let built = Command::new(wrapper)
        .current_dir(folder)
        .args(["-O1", "-g", "-o"])
        .arg(&output)
        .args(sources.iter().map(|s| programs.join(s)))
        .args(flags)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    output
}

/// Compiler flags for a teaching program in addition to its source: libnodewise.
pub fn library() -> [String; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = |p: &str| root.join(p).canonicalize().unwrap().display().to_string();
    [
        format!("-I{}", path("lib/include")),
        path("build/library/libnodewise.a"),
    ]
}

/// A C program with OpenMP and threads.
pub fn program(folder: &Path, source: &str) -> PathBuf {
    build(
        folder,
        "nodewise-cc",
        &[source],
        "program",
        &["-fopenmp", "-pthread", "-ldl"],
    )
}

/// `nodewise record` with these arguments before `-- command`.
pub fn record(folder: &Path, arguments: &[&str], command: &[&str]) -> Output {
    let mut record = Command::new(NODEWISE);
    record.current_dir(folder).arg("record").args(arguments);
    record
        .args(["-o", "profile", "--"])
        .args(command)
        .output()
        .unwrap()
}

/// A profile, read back whole.
pub struct Recorded {
    /// All tables but the accesses.
    pub profile: Profile,
    /// The access table, slice after slice.
    pub rows: Vec<Access>,
}

impl Recorded {
    /// Reads the profile that a recording in `folder` wrote.
    pub fn read(folder: &Path) -> Self {
        let reader = Reader::open(&folder.join("profile")).unwrap();
        let mut rows = Vec::new();
        reader.visit(&mut |batch| rows.extend_from_slice(batch)).unwrap();
        Self {
            profile: reader.into_profile(),
            rows,
        }
    }

    /// Number of reads and writes in the rows that `wanted` selects.
    pub fn counts(&self, wanted: impl Fn(&Access) -> bool) -> (u64, u64) {
        let rows = self.rows.iter().filter(|a| wanted(a));
        rows.fold((0, 0), |(r, w), a| {
            (r + u64::from(a.len) * a.reads, w + u64::from(a.len) * a.writes)
        })
    }

    /// Reads and writes of all objects with this name.
    pub fn of(&self, name: &str) -> (u64, u64) {
        self.counts(|a| self.profile.objects[a.object.index()].name == name)
    }

    /// Names of the objects of a kind.
    pub fn names(&self, kind: ObjectKind) -> Vec<&str> {
        self.profile
            .objects
            .iter()
            .filter(|o| o.kind == kind)
            .map(|o| o.name.as_str())
            .collect()
    }

    /// Sites of the allocation and of the first touch of a named object.
    pub fn sites(&self, name: &str) -> (String, Vec<String>) {
        let site = |id: nodewise_profile::SiteId| self.profile.sites[id.index()].to_string();
        let id = self
            .profile
            .objects
            .iter()
            .position(|o| o.name == name)
            .expect(name);
        let touches = self
            .profile
            .first_touches
            .iter()
            .filter(|t| t.object.index() == id);
        let mut touched: Vec<String> = touches.map(|t| site(t.site)).collect();
        touched.sort();
        touched.dedup();
        (site(self.profile.objects[id].site), touched)
    }
}

/// Exit status of the program, as a shell reports it, or of the recorder.
pub fn status(output: &Output) -> i32 {
    output.status.code().expect("nodewise itself is not killed")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Number of slices that a reader of a profile finds now; 0 if there is nothing to read.
pub fn slices(profile: &Path) -> usize {
    Reader::open(profile).map_or(0, |reader| reader.profile().slices.len())
}

/// Waits for something another process does; fails after a minute.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal, by name.
pub fn signal(pid: u32, name: &str) {
    let script = format!("kill -{name} {pid}");
    assert!(
        Command::new("/bin/sh")
            .args(["-c", &script])
            .status()
            .unwrap()
            .success()
    );
}
