//! `nodewise doctor`, in installations that have everything or lack something.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes that are recognised as a bzImage kernel.
fn keep_kernel(cache: &Path, version: &str) {
    let mut bytes = vec![0; 4096];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x400_u16.to_le_bytes());
    bytes[0x600..0x600 + version.len()].copy_from_slice(version.as_bytes());
    std::fs::write(cache.join(format!("vmlinuz-{version}")), bytes).unwrap();
}

/// A copy of the binary in a folder of its own, removed at the end.
struct Installation(PathBuf);

impl Installation {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nodewise-doctor-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        // A kept kernel saves asking apt, which takes a second.
        std::fs::create_dir_all(folder.join("cache/nodewise")).unwrap();
        keep_kernel(&folder.join("cache/nodewise"), "5.9.1");
        std::fs::copy(env!("CARGO_BIN_EXE_nodewise"), folder.join("nodewise")).unwrap();
        Self(folder)
    }

    fn library(self, name: &str) -> Self {
        std::fs::write(self.0.join("lib").join(name), "").unwrap();
        self
    }

    /// Installs a compiler wrapper that runs a line of shell.
    fn wrapper(self, line: &str) -> Self {
        let path = self.0.join("nodewise-cc");
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Installs a fake emulator that reports this version.
    fn qemu(&self, program: &str, version: &str, help: &str) {
        let path = self.0.join(program);
        let text = format!(
            "#!/bin/sh\ncase $1 in --version) echo \"QEMU emulator version {version} (Debian)\";; *) echo '{help}';; esac\n"
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn doctor(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(self.0.join("nodewise"));
        command
            .env("NODEWISE_QEMU_USER", self.0.join("qemu-user"))
            .env("NODEWISE_QEMU_SYSTEM", self.0.join("qemu-system"))
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .arg("doctor")
            .args(arguments);
        // A child that another test has just forked may still hold the copy open.
        let output = loop {
            match command.output() {
                Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                output => break output.unwrap(),
            }
        };
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    fn finding(&self, name: &str) -> Value {
        let (_, text) = self.doctor(&["--json"]);
        let json: Value = serde_json::from_str(&text).unwrap();
        let all = json["findings"].as_array().unwrap();
        all.iter()
            .find(|f| f["name"] == name)
            .unwrap_or(&Value::Null)
            .clone()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn whole(test: &str, wrapper: &str) -> Installation {
    let names = [
        "libnodewise-rt.so",
        "libnodewise-preload.so",
        "nodewise-pass-19.so",
    ];
    names
        .iter()
        .fold(Installation::new(test), |i, name| i.library(name))
        .wrapper(wrapper)
}

#[test]
fn a_whole_installation_is_usable() {
    let installation = whole("whole", "cat > /dev/null");
    let (status, text) = installation.doctor(&[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("Programs can be recorded here"), "{text}");
    for name in ["instrument", "openmp", "preload"] {
        assert_eq!(installation.finding(name)["state"], "works", "{name}");
    }
}

#[test]
fn sources_of_samples_that_no_version_uses_alone_are_not_called_working() {
    let installation = whole("samples", "cat > /dev/null");
    let samples = installation.finding("pmu");
    assert_eq!(samples["state"], "limited");
    assert!(samples["because"].as_str().unwrap().contains("loads"));
    assert_ne!(installation.finding("damon")["state"], "works");
}

#[test]
fn an_emulator_wants_the_plugin_of_its_interface() {
    let help = "-plugin [file=]FILE";
    let installation = Installation::new("qemu").library("nodewise-lab-init");
    let plugin = |name: &str, interface: u32| {
        let file = |i: u32| installation.0.join(format!("lib/libnodewise-{name}-{i}.so"));
        let _ = std::fs::remove_file(file(3 - interface));
        std::fs::write(file(interface), "").unwrap();
    };
    let state = |name: &str| {
        let found = installation.finding(name);
        let word = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (word("state"), word("mend"))
    };
    for (name, program, package) in [
        ("emulate", "qemu-user", "apt install qemu-user"),
        ("lab", "qemu-system", "apt install qemu-system-x86"),
    ] {
        let missing = |mend: &str| ("missing".to_owned(), mend.to_owned());
        plugin(name, 1);
        assert_eq!(state(name), missing(package));
        installation.qemu(program, "7.2.22", "-m, -smp");
        assert_eq!(state(name), missing(package), "without plugins");
        for (version, interface) in [("7.2.22", 1), ("8.2.0", 1), ("9.0.0", 2), ("10.0.2", 2)] {
            installation.qemu(program, version, help);
            plugin(name, interface);
            assert_eq!(state(name).0, "works", "{name} {version}");
            plugin(name, 3 - interface);
            assert_eq!(state(name), missing("make build"), "{name} {version}");
        }
    }
}

#[test]
fn a_kernel_that_was_kept_is_named() {
    let installation = Installation::new("kernel");
    let cache = installation.0.join("cache/nodewise");
    keep_kernel(&cache, "5.10.0-56-cloud-amd64");
    std::fs::write(cache.join("vmlinuz-6.1.0"), "damaged").unwrap();
    let found = installation.finding("kernel");
    assert!(
        found["because"].as_str().unwrap().contains("5.10.0-56"),
        "{found}"
    );
}

#[test]
fn without_runtime_pass_or_compiler_the_remedy_is_a_command() {
    let cases = [
        (Installation::new("empty"), "make build"),
        (
            Installation::new("no-pass").library("libnodewise-rt.so"),
            "apt install clang-19",
        ),
        (
            whole("no-clang", "echo 'nodewise-cc: no clang 19 found' >&2; exit 2"),
            "apt install clang-19",
        ),
    ];
    for (installation, mend) in cases {
        let (status, text) = installation.doctor(&[]);
        assert_eq!(status, Some(1), "{text}");
        let finding = installation.finding("instrument");
        assert_eq!(finding["state"], "missing");
        assert!(finding["mend"].as_str().unwrap().starts_with(mend), "{finding}");
    }
}

#[test]
fn a_compiler_without_openmp_limits_but_does_not_fail() {
    let wrapper = "cat > /dev/null; case $* in *openmp*) echo \"fatal error: 'omp.h' file not found\" >&2; exit 1;; esac";
    let installation = whole("openmp", wrapper);
    assert_eq!(installation.doctor(&[]).0, Some(0));
    let finding = installation.finding("openmp");
    assert_eq!(
        (finding["state"].as_str(), finding["mend"].as_str()),
        (Some("limited"), Some("apt install libomp-19-dev"))
    );
}

#[test]
fn the_kernels_settings_are_read_from_its_files() {
    let installation = whole("settings", "cat > /dev/null");
    let root = installation.0.join("root");
    write(&root, "proc/sys/kernel/numa_balancing", "1\n");
    write(
        &root,
        "proc/self/status",
        "Name:\tx\nCapEff:\t0\nMems_allowed_list:\t0-1,4\n",
    );
    write(
        &root,
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    );
    write(
        &root,
        "sys/fs/cgroup/cgroup.controllers",
        "cpuset cpu io memory\n",
    );
    write(&root, "sys/devices/system/cpu/online", "0-3\n");
    let (_, text) = installation.doctor(&["--root", root.to_str().unwrap()]);
    for part in [
        "sysctl kernel.numa_balancing=0",
        "2 MiB at a time",
        "nodes 0-1,4",
        "version 2",
        "one memory node",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
