//! Tests `nodewise serve` through its command line and HTTP.

mod synthetic;

use nodewise_profile::{Access, Object, PageNumber, Profile, Region, Site, Slice, Thread};
use nodewise_store::Writer;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::Duration;

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");
const MACHINE: [&str; 2] = ["--machine", "machine-a"];

/// A server that ends with the test.
struct Served {
    process: Child,
    address: String,
    /// Path that all documents lie below: `/TOKEN/`.
    below: String,
}

impl Served {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(NODEWISE);
        command.arg("serve").arg(folder).args(MACHINE).args(more);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.next().unwrap().unwrap();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self {
            process,
            address: address.to_owned(),
            below: format!("/{token}"),
        }
    }

    fn ask(&self, name: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let Self { address, below, .. } = self;
        write!(
            stream,
            "GET {below}{name} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        stream
    }

    /// HTTP status and body of a document.
    fn get(&self, name: &str) -> (u16, Vec<u8>) {
        let mut answer = Vec::new();
        self.ask(name).read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            answer[end + 4..].to_vec(),
        )
    }

    fn json(&self, name: &str) -> Value {
        let (status, body) = self.get(name);
        assert_eq!(status, 200, "{name}");
        serde_json::from_slice(&body).unwrap()
    }

    fn standard_error(&mut self) -> ChildStderr {
        self.process.stderr.take().unwrap()
    }

    fn standard_input(&mut self) -> ChildStdin {
        self.process.stdin.take().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A stream of server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(served: &Served) -> Self {
        Self(BufReader::new(served.ask("events")))
    }

    /// The data of the next event of this name.
    fn next(&mut self, name: &str) -> Value {
        let mut found = false;
        for line in self.0.by_ref().lines().map(Result::unwrap) {
            match line.strip_prefix("data: ") {
                Some(data) if found => return serde_json::from_str(data).unwrap(),
                _ => found |= line == format!("event: {name}"),
            }
        }
        panic!("the events ended without {name}");
    }
}

fn report(folder: &Path) -> Value {
    let output = Command::new(NODEWISE)
        .args(["report", "--json"])
        .args(MACHINE)
        .arg(folder)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Replaces a profile by another one as a recorder does: the manifest is replaced last, atomically.
fn replace(folder: &Path, with: &Path) {
    let files = std::fs::read_dir(with).unwrap().map(|e| e.unwrap().path());
    let (manifest, others): (Vec<_>, Vec<_>) = files.partition(|f| f.ends_with("manifest.json"));
    for file in others {
        std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    let partial = folder.join("manifest.json.partial");
    std::fs::copy(&manifest[0], &partial).unwrap();
    std::fs::rename(&partial, folder.join("manifest.json")).unwrap();
}

#[test]
fn all_documents_are_served_and_the_report_is_that_of_report() {
    let folder = synthetic::balanced("serve-documents");
    let served = Served::start(&folder, &[]);
    let session = served.json("session.json");
    assert_eq!(
        (&session["live"], &session["message"]),
        (&Value::Bool(false), &Value::Null)
    );
    assert_eq!(session["profiles"].as_array().unwrap().len(), 1);
    assert_eq!(served.json("p/0/report.json"), report(&folder));
    let strip = served.json("p/0/strip.json");
    let coarsest = &strip["coarsest"];
    for name in [
        "",
        "page.js",
        "page.css",
        "p/0/machine.json",
        "p/0/threads.json",
        "p/0/film",
    ] {
        assert_eq!(served.get(name).0, 200, "{name}");
    }
    for kind in ["tile", "detail"] {
        assert_eq!(served.get(&format!("p/0/{kind}/{coarsest}/0")).0, 200, "{kind}");
        assert_eq!(served.get(&format!("p/0/{kind}/{coarsest}/1")).0, 404, "{kind}");
        assert_eq!(served.get(&format!("p/0/{kind}/99/0")).0, 404, "{kind}");
    }
    assert_eq!(served.get("p/1/report.json").0, 404);
}

#[test]
fn two_profiles_are_shown_side_by_side() {
    let (one, two) = (synthetic::profile("serve-one"), synthetic::balanced("serve-two"));
    let served = Served::start(&one, &["--against", two.to_str().unwrap()]);
    assert_eq!(served.json("p/0/report.json"), report(&one));
    assert_eq!(served.json("p/1/report.json"), report(&two));
}

#[test]
fn a_profile_written_anew_is_told_and_shown() {
    let (folder, other) = (
        synthetic::profile("serve-live"),
        synthetic::balanced("serve-other"),
    );
    let served = Served::start(&folder, &[]);
    let mut events = Events::of(&served);
    let before = events.next("session")["generation"].as_u64().unwrap();
    replace(&folder, &other);
    let after = events.next("session");
    assert!(after["generation"].as_u64().unwrap() > before, "{after}");
    assert_eq!(served.json("session.json"), after);
    assert_eq!(served.json("p/0/report.json")["moves"], report(&other)["moves"]);
}

#[test]
fn what_cannot_be_read_any_more_stays_as_it_was_and_is_said() {
    let folder = synthetic::profile("serve-damaged");
    let before = report(&folder);
    let mut served = Served::start(&folder, &[]);
    let mut events = Events::of(&served);
    assert_eq!(events.next("session")["message"], Value::Null);
    std::fs::write(folder.join("manifest.json"), "{").unwrap();
    let message = events.next("session")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("manifest.json"), "{message}");
    assert_eq!(served.json("p/0/report.json"), before);
    let mut stderr = String::new();
    BufReader::new(served.standard_error())
        .read_line(&mut stderr)
        .unwrap();
    assert_eq!(stderr, format!("nodewise: {message}\n"));
}

/// Runs of 2³⁰ pages, in a profile of a few kilobytes.
fn hostile(folder: &Path) {
    let row = |page: u64| Access {
        page: PageNumber(page << 30),
        len: 1 << 30,
        reads: 1,
        lines: 1,
        ..Access::default()
    };
    let profile = Profile {
        objects: vec![Object::default()],
        threads: vec![Thread::default()],
        regions: vec![Region::default()],
        sites: vec![Site::default()],
        slices: vec![Slice::default()],
        ..Profile::default()
    };
    let mut writer = Writer::create(folder, &profile.meta, true).unwrap();
    let rows: Vec<Access> = (0..64).map(row).collect();
    writer.slice(profile.slices[0], &rows).unwrap();
    writer.finish(&profile).unwrap();
}

#[test]
fn a_profile_that_asks_for_too_much_leaves_the_one_before_on_show() {
    let (folder, good) = (
        synthetic::profile("serve-hostile"),
        synthetic::profile("serve-good"),
    );
    let before = report(&folder);
    let served = Served::start(&folder, &[]);
    let mut events = Events::of(&served);
    assert_eq!(events.next("session")["message"], Value::Null);
    hostile(&folder);
    let session_message = |events: &mut Events| {
        events.next("session")["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let message = std::iter::repeat_with(|| session_message(&mut events)).find(|m| !m.is_empty());
    assert!(
        message
            .unwrap()
            .contains("that are in no object and that nothing touched first")
    );
    assert_eq!(served.json("p/0/report.json"), before);
    replace(&folder, &good);
    assert!(std::iter::repeat_with(|| session_message(&mut events)).any(|m| m.is_empty()));
    // A table that is an endless device, and one that is a pipe without a writer.
    let table = folder.join("objects.parquet");
    for (program, target) in [("ln", "/dev/zero"), ("mkfifo", "")] {
        std::fs::remove_file(&table).unwrap();
        let mut command = Command::new(program);
        let command = if target.is_empty() {
            &mut command
        } else {
            command.args(["-s", target])
        };
        assert!(command.arg(&table).status().unwrap().success());
        // The manifest's text changes, but not its content.
        let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
        std::fs::write(folder.join("manifest.json"), manifest + "\n").unwrap();
        let message = std::iter::repeat_with(|| session_message(&mut events)).find(|m| !m.is_empty());
        let message = message.unwrap();
        assert!(message.contains("objects.parquet"), "{message}");
        assert_eq!(served.json("p/0/report.json"), before);
    }
}

#[test]
fn a_session_is_waited_for_its_intervals_are_told_and_its_end_is_ours() {
    let (folder, other) = (
        synthetic::profile("serve-session"),
        synthetic::profile("serve-first"),
    );
    std::fs::remove_file(folder.join("manifest.json")).unwrap();
    let mut served = Served::start(&folder, &["--session"]);
    let mut session = served.standard_input();
    let mut events = Events::of(&served);
    let waits = events.next("session");
    assert_eq!(
        (&waits["live"], waits["profiles"].as_array().unwrap().len()),
        (&Value::Bool(true), 0)
    );
    assert!(waits["message"].is_string());
    session.write_all(b"no json\n{\"pages_moved\": 7}\n").unwrap();
    assert_eq!(events.next("interval")["pages_moved"], 7);
    replace(&folder, &other);
    assert_eq!(events.next("session")["message"], Value::Null);
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.process.id())).unwrap();
    assert!(
        status.contains("CapPrm:\t0000000000000000") && status.contains("NoNewPrivs:\t1"),
        "{status}"
    );
    drop(session);
    assert!(served.process.wait().unwrap().success());
}

#[test]
fn the_last_of_a_session_is_shown_before_its_page_ends() {
    let (folder, last) = (
        synthetic::profile("serve-ending"),
        synthetic::balanced("serve-last"),
    );
    let mut served = Served::start(&folder, &["--session"]);
    let mut events = Events::of(&served);
    assert_eq!(events.next("session")["live"], true);
    replace(&folder, &last);
    drop(served.standard_input());
    let ended = std::iter::repeat_with(|| events.next("session")).find(|session| session["live"] == false);
    let message = format!(
        "the session has ended; nodewise serve {} shows it again",
        folder.display()
    );
    assert_eq!(ended.unwrap()["message"], message);
    let moves = &report(&last)["moves"];
    assert!(std::iter::repeat_with(|| served.json("p/0/report.json")).any(|r| r["moves"] == *moves));
    assert!(served.process.wait().unwrap().success());
}

#[test]
fn ctrl_c_ends_it_well() {
    for signal in ["-INT", "-TERM"] {
        let mut served = Served::start(&synthetic::profile("serve-end"), &[]);
        let pid = served.process.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        assert!(served.process.wait().unwrap().success(), "{signal}");
    }
}

#[test]
fn what_cannot_be_served_is_one_line_and_status_2() {
    let folder = synthetic::profile("serve-refused");
    let served = Served::start(&folder, &[]);
    let port = served.address.rsplit(':').next().unwrap();
    let folder = folder.to_str().unwrap();
    for (arguments, says) in [
        (vec![folder, "--port", port], "in use"),
        (vec![folder, "--listen", "192.0.2.1"], "no address of this host"),
        (vec!["/nonexistent"], "/nonexistent"),
        (vec![folder, "--against", "/nonexistent"], "/nonexistent"),
        (vec![folder, "--policy", "none-such"], "none-such"),
    ] {
        let output = Command::new(NODEWISE)
            .arg("serve")
            .args(&arguments)
            .args(MACHINE)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(
            error.contains(says) && error.trim_end().lines().count() == 1,
            "{arguments:?}: {error}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn listening_to_others_is_warned_of_and_names_are_still_not_trusted() {
    let folder = synthetic::profile("serve-listen");
    let mut served = Served::start(&folder, &["--listen", "0.0.0.0"]);
    let mut stderr = String::new();
    BufReader::new(served.standard_error())
        .read_line(&mut stderr)
        .unwrap();
    assert!(stderr.contains("whoever reaches this host"), "{stderr}");
    assert_eq!(served.get("session.json").0, 200);
    let port = served.address.rsplit(':').next().unwrap().to_owned();
    served.address = served.address.replace("127.0.0.1", "localhost");
    assert_eq!(served.get("session.json").0, 200);
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    let below = &served.below;
    write!(
        stream,
        "GET {below} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}
