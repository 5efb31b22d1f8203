//! `nodewise lab` without booting a guest: errors that can be detected before are reported before, in one line.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A host with an emulator that reports its version and then fails, and a kernel file with only a valid header, so that
/// every attempt to boot is detected.
struct Host(PathBuf);

impl Host {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nodewise-lab-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let host = Self(folder);
        host.script(
            "qemu",
            "#!/bin/sh\ncase $1 in\n--version) echo 'QEMU emulator version 7.2.22 (Debian)';;\n\
             --help) echo '-plugin [file=]FILE';;\n*) echo booted >> \"${0%/*}/booted\"\n\
             [ -z \"$FAKE_SLEEPS\" ] || exec sleep 600\n\
             echo loading >&2; echo no such board >&2; exit 3;;\nesac\n",
        );
        let mut kernel = vec![0; 4096];
        kernel[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x20e..0x210].copy_from_slice(&0x400_u16.to_le_bytes());
        kernel[0x600..0x606].copy_from_slice(b"6.1.0 ");
        host.file("vmlinuz", &kernel);
        host
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.file(name, text.as_bytes());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// A program file with a few changed bytes, which make it another kind of program.
    fn altered(&self, name: &str, bytes: &[(usize, u8)]) -> String {
        let mut program = std::fs::read("/bin/true").unwrap();
        bytes.iter().for_each(|(at, byte)| program[*at] = *byte);
        let path = self.file(name, &program);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let file = self.file(&format!("{name}.c"), source.as_bytes());
        let program = self.path(name);
        let mut compiler = Command::new("cc");
        let status = compiler.args(flags).args(["-o", &program, &file]).status();
        assert!(status.unwrap().success());
        program
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
        command
            .arg("lab")
            .args(arguments)
            .current_dir(&self.0)
            .env("NODEWISE_QEMU_SYSTEM", self.0.join("qemu"))
            .env("XDG_CACHE_HOME", self.0.join("cache"));
        command
    }

    /// Fails without a boot, with one line on standard error and nothing on standard output.
    fn refused(&self, output: &Output, status: i32, parts: &[&str]) {
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with("nodewise: "), "{error}");
        for part in parts {
            assert!(error.contains(part), "no {part} in {error}");
        }
        assert!(output.stdout.is_empty());
        assert!(!self.0.join("booted").exists(), "booted, then {error}");
    }

    fn refuses(&self, arguments: &[&str], status: i32, parts: &[&str]) {
        self.refused(&self.command(arguments).output().unwrap(), status, parts);
    }

    /// A command on two nodes.
    fn refuses_command(&self, command: &[&str], status: i32, parts: &[&str]) {
        let kernel = self.path("vmlinuz");
        let arguments = ["--machine", "nehalem-2s", "--kernel", &kernel, "--"];
        self.refuses(&[&arguments, command].concat(), status, parts);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_missing_emulator_is_named_with_its_package() {
    let host = Host::new("no-qemu");
    let mut command = host.command(&["--machine", "machine-a", "--", "true"]);
    let output = command.env("NODEWISE_QEMU_SYSTEM", "/nonexistent/qemu").output();
    host.refused(&output.unwrap(), 125, &["/nonexistent/qemu", "qemu-system-x86"]);
}

#[test]
fn without_a_kernel_and_without_apt_the_remedy_is_an_option() {
    let host = Host::new("no-kernel");
    let mut command = host.command(&["--machine", "machine-a", "--", "/bin/true"]);
    let output = command.env("PATH", &host.0).output().unwrap();
    host.refused(&output, 125, &["kernel", "--kernel"]);
    let text = host.file("notes.txt", b"no kernel at all");
    host.refuses(
        &["--machine", "machine-a", "--kernel", &text, "--", "true"],
        125,
        &[&text],
    );
}

#[test]
fn programs_for_other_processors_are_not_executable() {
    let host = Host::new("architecture");
    let arm = host.altered("arm", &[(18, 183), (19, 0)]);
    host.refuses_command(&[&arm], 126, &[&arm, "x86-64"]);
    let narrow = host.altered("narrow", &[(4, 1), (18, 3), (19, 0)]);
    host.refuses_command(&[&narrow], 126, &[&narrow]);
}

#[test]
fn avx_512_code_is_found_before_booting() {
    let host = Host::new("avx512");
    let wide = "vaddpd %zmm1, %zmm2, %zmm3; vmulpd %zmm3, %zmm1, %zmm2; vsubpd %zmm1, %zmm2, %zmm3";
    let source = format!("int main(void) {{ __asm__ volatile(\"{wide}\"); return 0; }}\n");
    let program = host.compile("wide", &source, &[]);
    host.refuses_command(&[&program], 126, &["AVX-512"]);
    let source = source.replace("main", "wide");
    let library = host.compile("libwide.so", &source, &["-shared", "-fPIC"]);
    let source = "int wide(void);\nint main(void) { return wide(); }\n";
    let path = format!("-Wl,-rpath,{}", host.0.display());
    let user = host.compile("user", source, &["-Wl,--no-as-needed", &path, &library]);
    host.refuses_command(&[&user], 126, &[&user, &library, "AVX-512"]);
}

#[test]
fn a_scripts_interpreter_must_exist() {
    let host = Host::new("script");
    let script = host.script("job", "#!/opt/nowhere/perl -w\nprint 1;\n");
    host.refuses_command(&[&script], 126, &["/opt/nowhere/perl"]);
}

#[test]
fn what_env_would_start_is_missed_before_anything_else_is_looked_for() {
    let host = Host::new("env");
    let script = host.script("job", "#!/usr/bin/env -S no-such-language -w\nprint 1\n");
    let mut command = host.command(&["--machine", "nehalem-2s", "--", &script]);
    let output = command.env("NODEWISE_QEMU_SYSTEM", "/nonexistent/qemu").output();
    host.refused(&output.unwrap(), 126, &[&script, "no-such-language is missing"]);
}

#[test]
fn static_programs_take_every_placement_but_those_from_within() {
    let host = Host::new("static");
    let program = host.compile("alone", "int main(void) { return 0; }\n", &["-static"]);
    let kernel = host.path("vmlinuz");
    let on = |placements: &str| {
        let arguments = [
            "--machine",
            "nehalem-2s",
            "--kernel",
            &kernel,
            "--compare",
            placements,
            "--",
            &program,
        ];
        host.command(&arguments).output().unwrap()
    };
    let output = on("first-touch,interleave");
    host.refused(
        &output,
        125,
        &["statically linked", "--under interleave", "round-robin"],
    );
    on("first-touch,round-robin,node:1,autonuma");
    assert!(host.0.join("booted").exists());
}

#[test]
fn commands_that_need_the_network_are_refused() {
    let host = Host::new("network");
    let curl = host.altered("curl", &[]);
    host.refuses_command(&[&curl, "somewhere"], 126, &["network"]);
    host.refuses_command(
        &["/bin/true", "https://example.org/data"],
        126,
        &["network", "--with"],
    );
}

#[test]
fn what_is_no_command_has_the_shells_status() {
    let host = Host::new("command");
    host.refuses_command(&["no-such-program"], 127, &["no-such-program"]);
    let text = host.file("plain", b"text\n");
    host.refuses_command(&[&text], 126, &[&text]);
    host.refuses_command(&["/tmp"], 126, &["/tmp is a folder"]);
}

#[test]
fn odd_arguments_are_one_line() {
    let host = Host::new("arguments");
    let kernel = host.path("vmlinuz");
    let on = |rest: &[&'static str], parts: &[&str]| {
        let before = ["--machine", "nehalem-2s", "--kernel", kernel.as_str()];
        let after = ["--", "/bin/true"];
        host.refuses(&[&before[..], rest, &after[..]].concat(), 125, parts);
    };
    on(&["--under", "balance:asym"], &["balance:asym", "dominant"]);
    on(&["--under", "best"], &["best", "first-touch", "map:FILE"]);
    on(&["--under", "node:7"], &["7"]);
    on(&["--under", "map:none.map"], &["none.map"]);
    on(
        &["--under", "autonuma", "--compare", "interleave"],
        &["--compare"],
    );
    on(&["--compare", "autonuma,best"], &["best"]);
    on(&["--with", "none.txt"], &["none.txt"]);
    on(&["--stdin", "none.txt"], &["none.txt"]);
    on(&["--bind", "tight"], &["tight", "compact"]);
    on(&["--env", "NOVALUE"], &["NOVALUE", "NAME=VALUE"]);
    on(&["--memory", "much"], &["much", "4G"]);
    on(&["--memory", "4M"], &["4 MiB"]);
    on(&["--cpus", "1"], &["1 CPU", "2 nodes"]);
    on(&["--time-limit", "soon"], &["soon", "10m"]);
    on(&["--no-counters", "--svg", "a.svg"], &["--no-counters"]);
    host.refuses(&["--machine", "nehalem-2s"], 125, &["CMD"]);
    host.refuses(&["--", "true"], 125, &["--machine"]);
    host.refuses(&["--machine", "xeon-x7505", "--", "true"], 125, &["xeon-x7550"]);
}

#[test]
fn a_batch_may_have_many_lines_and_each_is_read_before_a_boot() {
    let host = Host::new("batch");
    let kernel = host.path("vmlinuz");
    let batch = |name: &str, lines: usize, last: &str| {
        let mut text = "first-touch /bin/true\n".repeat(lines - 1);
        text += last;
        host.file(name, text.as_bytes())
    };
    let on = |file: &str| {
        let arguments = ["--machine", "nehalem-2s", "--kernel", &kernel, "--batch", file];
        host.command(&arguments).output().unwrap()
    };
    let bad = batch("bad", 65, "magic /bin/true\n");
    host.refused(&on(&bad), 125, &["bad, line 65", "magic"]);
    let none = batch("none", 65, "node:1\n");
    host.refused(&on(&none), 125, &["none, line 65", "a command is missing"]);
    let absent = batch("absent", 65, "first-touch no-such-program\n");
    host.refused(&on(&absent), 127, &["no-such-program"]);
    let beyond = batch("beyond", 65, "node:7 /bin/true\n");
    host.refused(&on(&beyond), 125, &["7"]);
    let most = batch("most", 1025, "first-touch /bin/true\n");
    host.refused(&on(&most), 125, &["1025 runs in one boot: 1024 at most"]);
    // The same number of valid lines leads to a boot.
    for lines in [65, 1024] {
        let _ = std::fs::remove_file(host.0.join("booted"));
        let output = on(&batch("good", lines, "interleave /bin/true\n"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("the guest did not come up"),
            "{lines} lines: {error}"
        );
        assert!(host.0.join("booted").exists());
    }
}

#[test]
fn more_than_sixteen_nodes_are_too_many() {
    let host = Host::new("nodes");
    let row = |r: usize| {
        (0..17)
            .map(|m| if m == r { "100" } else { "200" })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let matrix: Vec<String> = (0..17).map(|r| format!("[{}]", row(r))).collect();
    let nodes: Vec<String> = (0..17)
        .map(|n| format!("{{ cpus = \"{n}\", memory = \"1G\", bandwidth = 1000 }}"))
        .collect();
    let text = format!(
        "name = \"many\"\ntitle = \"many\"\nlatency_ns = [{}]\nnodes = [{}]\nlinks = [{{ among = {:?}, bandwidth = 1000 }}]\n",
        matrix.join(", "),
        nodes.join(", "),
        (0..17).collect::<Vec<_>>(),
    );
    let file = host.file("many.toml", text.as_bytes());
    host.refuses(&["--machine", &file, "--", "/bin/true"], 125, &["17", "16"]);
}

#[test]
fn existing_files_stay_and_are_found_before_anything_is_done() {
    let host = Host::new("existing");
    let picture = host.file("a.svg", b"mine");
    host.refuses(
        &["--machine", "nehalem-2s", "--svg", &picture, "--", "true"],
        125,
        &["--force"],
    );
    host.refuses(
        &[
            "--machine",
            "nehalem-2s",
            "--svg",
            &host.path("no/a.svg"),
            "--",
            "true",
        ],
        125,
        &["no folder"],
    );
    let folder = host.path("captured");
    std::fs::create_dir(&folder).unwrap();
    host.file("captured/precious", b"mine");
    host.refuses(
        &["--machine", "nehalem-2s", "--capture", &folder],
        125,
        &["--force"],
    );
    assert_eq!(std::fs::read(&picture).unwrap(), b"mine");
    assert_eq!(
        std::fs::read(Path::new(&folder).join("precious")).unwrap(),
        b"mine"
    );
}

#[test]
fn an_emulator_that_fails_is_told_and_leaves_nothing() {
    let host = Host::new("failing");
    let kernel = host.path("vmlinuz");
    let arguments = [
        "--machine",
        "nehalem-2s",
        "--kernel",
        &kernel,
        "--json",
        "--",
        "/bin/true",
    ];
    let output = host.command(&arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(
        error
            .lines()
            .last()
            .unwrap()
            .ends_with("the guest did not come up: QEMU ended (exit status: 3): no such board"),
        "{error}"
    );
    assert!(output.stdout.is_empty());
    let mut left: Vec<_> = std::fs::read_dir(&host.0)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n != "cache")
        .collect();
    left.sort();
    assert_eq!(left, ["booted", "qemu", "vmlinuz"]);
}

/// The children of a process.
fn children(parent: u32) -> Vec<u32> {
    let folder = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(folder).unwrap_or_default();
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

/// Polls a condition until it holds, for at most some seconds.
fn soon(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("not within ten seconds: {what}");
}

/// A mask with one bit for each signal; signal 1 is the lowest bit.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
}

#[test]
fn however_it_is_ended_the_emulator_ends_too() {
    use std::os::unix::process::ExitStatusExt;
    let host = Host::new("signals");
    let temporary = host.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let kernel = host.path("vmlinuz");
    let booted = host.0.join("booted");
    // A test in a shell's background ignores SIGINT, and so does what it starts.
    let ignored = ignored_signals();
    for signal in [2, 15, 9].into_iter().filter(|s| ignored >> (s - 1) & 1 == 0) {
        let arguments = ["--machine", "nehalem-2s", "--kernel", &kernel, "--", "/bin/true"];
        let mut command = host.command(&arguments);
        command.env("FAKE_SLEEPS", "1").env("TMPDIR", &temporary);
        let mut lab = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        soon("a boot", || booted.exists() && !children(lab.id()).is_empty());
        let emulators = children(lab.id());
        let status = Command::new("kill")
            .args([format!("-{signal}"), lab.id().to_string()])
            .status();
        assert!(status.unwrap().success());
        // A shell reports 128 plus the signal's number.
        assert_eq!(lab.wait().unwrap().signal(), Some(signal));
        let gone = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |s| s.contains(") Z "))
        };
        soon("no emulator", || emulators.iter().all(gone));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
        std::fs::remove_file(&booted).unwrap();
    }
}

#[test]
fn the_scaled_machine_is_a_machine_file_that_is_not_scaled_again() {
    let host = Host::new("scaled");
    let (once, twice) = (host.path("once.toml"), host.path("twice.toml"));
    for (machine, file) in [("machine-a", &once), (once.as_str(), &twice)] {
        let size = ["--cpus", "16", "--memory", "2G"];
        let arguments = [&["--machine", machine, "--scaled", file], &size[..]].concat();
        let output = host.command(&arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    assert_eq!(read(&once), read(&twice));
    let topo = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args(["topo", "--json", "--machine", &once])
        .output();
    let topo: serde_json::Value = serde_json::from_slice(&topo.unwrap().stdout).unwrap();
    let title = topo["title"].as_str().unwrap();
    assert!(
        title.ends_with("; scaled: 16 of 64 CPUs, 2 GiB of 256 GiB memory"),
        "{title}"
    );
    let nodes = topo["nodes"].as_array().unwrap();
    let has = |node: &serde_json::Value| {
        node["cpus"].as_array().unwrap().len() == 2 && node["memory_bytes"] == 256 << 20
    };
    assert!(nodes.len() == 8 && nodes.iter().all(has), "{topo}");
    host.refuses(&["--machine", "machine-a", "--scaled", &once], 125, &["--force"]);
    assert!(!host.0.join("booted").exists());
}
