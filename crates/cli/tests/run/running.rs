//! Helpers that compile small programs, run them under `nodewise run`, and read the trace of the preload library.

use nodewise_machine::NodeId;
use nodewise_placement::Placement;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

pub const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

/// A folder of its own for one test.
pub struct Bench {
    pub folder: PathBuf,
}

/// A map file and its content.
pub struct Map {
    pub path: String,
    pub placement: Placement,
}

/// An object in the trace.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    pub rule: usize,
    pub page: u64,
    pub pages: u64,
    pub thread: u32,
}

/// The requests that the preload library would have made to the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub text: String,
    pub objects: Vec<Object>,
    pub bound: Vec<(u32, u32)>,
    nodes: BTreeMap<u64, NodeId>,
}

impl Bench {
    pub fn new(name: &str) -> Self {
        static BUILT: Once = Once::new();
        BUILT.call_once(build_preload);
        let folder = std::env::temp_dir().join(format!("nodewise-run-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        // The source file has the same name for all programs, because sites contain it.
        let (file, program) = (self.folder.join("program.c"), self.folder.join(name));
        std::fs::write(&file, source.trim_start_matches('\n')).unwrap();
        let mut compiler = Command::new("cc");
        let status =
            compiler
                .args(flags)
                .arg("-fno-inline")
                .args(["-fno-optimize-sibling-calls", "-w", "-o"]);
        assert!(status.args([&program, &file]).status().unwrap().success());
        program.display().to_string()
    }

    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Lets other users read the folder and run its programs.
    pub fn open_to_all(&self) {
        std::fs::set_permissions(&self.folder, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A map for four nodes with four threads, one on each.
    pub fn map(&self, program: &str, rules: &str) -> Map {
        let head = format!(
            "format = 1\npolicy = \"locality\"\nmachine = \"four\"\nnodes = 4\nprogram = \"{program}\"\nthreads = 4\n\
             page_size = 4096\ndefault = \"first-touch\"\n[kept]\nmapping_local = 1.0\nrules_local = 1.0\n\
             transferable_local = 1.0\n[binding]\nname = \"scatter\"\ncpus = [0, 4, 8, 12]\nnodes = [0, 1, 2, 3]\n"
        );
        let text = head + rules;
        let path = self.folder.join("program.map");
        std::fs::write(&path, &text).unwrap();
        Map {
            path: path.display().to_string(),
            placement: Placement::read(&text).unwrap(),
        }
    }

    pub fn plain(&self, program: &str) -> Output {
        Command::new(program).output().unwrap()
    }

    pub fn run(&self, arguments: &[&str], program: &str) -> Output {
        self.command(arguments, program).output().unwrap()
    }

    fn command(&self, arguments: &[&str], program: &str) -> Command {
        let mut command = Command::new(NODEWISE);
        command.arg("run").args(arguments).args(["--", program]);
        command.env_remove("OMP_NUM_THREADS");
        command
    }

    /// Runs on a pretended machine of four nodes with four CPUs each.
    pub fn traced(&self, arguments: &[&str], program: &str) -> (Output, Trace) {
        let path = self.folder.join("trace");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        let mut command = self.command(arguments, program);
        command.env("NODEWISE_PRELOAD_TRACE", &path);
        command
            .env("NODEWISE_PRELOAD_NODES", "4")
            .env("NODEWISE_PRELOAD_CPUS", "4");
        let output = command.output().unwrap();
        (
            output,
            Trace::read(&std::fs::read_to_string(&path).unwrap_or_default()),
        )
    }

    /// The table that `run` hands to the preload library, copied while a program waits.
    pub fn table(&self, program: &str) -> Vec<u8> {
        let copy = self.folder.join("table");
        let script = format!("#!/bin/sh\ncp \"$NODEWISE_PLACEMENT/table\" {}\n", copy.display());
        let script = self.script("keep.sh", &script);
        let mut command = Command::new(NODEWISE);
        command.args(["run", "--policy", "interleave", "--", "sh", &script]);
        command.env("NODEWISE_PRELOAD_TRACE", "/dev/null");
        assert!(command.status().unwrap().success(), "{program}");
        std::fs::read(copy).unwrap()
    }

    pub fn preloaded(&self, program: &str, placement: &Path) -> Output {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", preload())
            .env("NODEWISE_PLACEMENT", placement);
        command.output().unwrap()
    }

    /// Sends a signal to `nodewise run` once the program has printed a line; returns the exit status.
    pub fn signalled(&self, program: &str, signal: &str) -> Option<i32> {
        let mut child = self.command(&[], program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        // The shell's own `kill`: a bare system has no other.
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        child.wait().unwrap().code()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn preload() -> PathBuf {
    Path::new(NODEWISE)
        .parent()
        .unwrap()
        .join("lib/libnodewise-preload.so")
}

/// Builds the libraries as `make build` does; does nothing if they are up to date.
fn build_preload() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime");
    let folder = format!("BUILD_DIR={}", preload().parent().unwrap().display());
    let made = Command::new("make")
        .arg("-s")
        .arg("-C")
        .arg(runtime)
        .arg(folder)
        .status()
        .unwrap();
    assert!(made.success());
}

impl Trace {
    fn read(text: &str) -> Self {
        let mut trace = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for line in text.lines() {
            trace.line(&line.split_whitespace().collect::<Vec<_>>());
        }
        trace.bound.sort_unstable();
        trace
    }

    fn line(&mut self, words: &[&str]) {
        let hex = |w: &str| u64::from_str_radix(w, 16).unwrap();
        let number = |w: &str| w.parse::<u32>().unwrap();
        match *words {
            ["object", rule, page, pages, thread] => self.objects.push(Object {
                rule: number(rule) as usize,
                page: hex(page),
                pages: hex(pages),
                thread: number(thread),
            }),
            ["prefer" | "populate", page, pages, node] => {
                self.nodes
                    .extend((hex(page)..hex(page) + hex(pages)).map(|p| (p, NodeId(number(node)))));
            }
            ["interleave", page, pages, list] => {
                let list: Vec<u32> = list.split(',').map(number).collect();
                let node = |p: u64| NodeId(list[p as usize % list.len()]);
                self.nodes
                    .extend((hex(page)..hex(page) + hex(pages)).map(|p| (p, node(p))));
            }
            ["bind", ordinal, cpu] => self.bound.push((number(ordinal), number(cpu))),
            _ => {}
        }
    }

    pub fn node(&self, page: u64) -> Option<NodeId> {
        self.nodes.get(&page).copied()
    }

    /// The nodes of `count` threads by the map, on a machine with the map's nodes.
    pub fn thread_nodes(&self, placement: &Placement, count: usize) -> Vec<NodeId> {
        assert_eq!(placement.binding.nodes.len(), count);
        placement.binding.nodes.clone()
    }
}
