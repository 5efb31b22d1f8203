//! `nodewise top` on a terminal and without one.

mod synthetic;

use std::path::Path;
use std::process::{Command, Output, Stdio};

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(NODEWISE);
    command.arg("top").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A program that presses keys one by one, with pauses, in a terminal of the given size. It prints all output of the
/// terminal, and the exit status as the last line.
const TERMINAL: &str = r#"
import os, pty, sys, time, fcntl, termios, struct, select
keys, command = sys.argv[1].encode().decode('unicode_escape'), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm-256color'
    os.execv(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 100, 0, 0))
before = termios.tcgetattr(terminal)
seen = b''
def read(limit, until=None):
    global seen
    end = time.time() + limit
    while time.time() < end and not (until and until in seen):
        if select.select([terminal], [], [], 0.05)[0]:
            try: seen += os.read(terminal, 65536)
            except OSError: return
read(60, b'q quit')
for key in keys:
    os.write(terminal, key.encode())
    read(0.5)
    same = termios.tcgetattr(terminal)[3] == before[3]
for _ in range(600):
    done, status = os.waitpid(pid, os.WNOHANG)
    read(0.1)
    if done: break
sys.stdout.buffer.write(seen)
print('\nstatus', os.waitstatus_to_exitcode(status), 'modes as before', termios.tcgetattr(terminal)[3] == before[3])
"#;

fn on_a_terminal(keys: &str, folder: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", TERMINAL, keys, NODEWISE, "top", "--machine", "machine-a"])
        .arg(folder)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn one_screen_is_printed_as_text() {
    let folder = synthetic::balanced("top-once");
    let output = top(&[folder.to_str().unwrap(), "--once", "--machine", "machine-a"]);
    let screen = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in [
        "solve", "sampled", "finished", "local ", "moved ", "node 7", "grid", "rhs", "lhs", "advice",
    ] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    assert!(screen.chars().all(|c| c == '\n' || !c.is_control()), "{screen:?}");
    assert!(
        screen.lines().all(|l| l.chars().count() <= 100) && !screen.contains("q quit"),
        "{screen}"
    );
}

#[test]
fn keys_work_on_a_terminal_which_is_put_back() {
    let seen = on_a_terminal("?m\\rq", &synthetic::profile("top-keys"));
    for part in [
        "\x1b[?1049h",
        "┌ help",
        "allocated at",
        "\x1b[?1049l",
        "status 0 modes as before True",
    ] {
        assert!(seen.contains(part), "{part:?}\n{seen}");
    }
    let interrupted = on_a_terminal("\\x03", &synthetic::profile("top-interrupted"));
    assert!(
        interrupted.ends_with("status 0 modes as before True\n"),
        "{interrupted}"
    );
}

#[test]
fn without_a_terminal_a_profile_or_a_process_it_is_one_line_and_status_2() {
    let folder = synthetic::profile("top-refused");
    let folder = folder.to_str().unwrap();
    for (arguments, says) in [
        (vec![folder], "needs a terminal"),
        (vec!["/nonexistent", "--once"], "/nonexistent"),
        (vec!["--once", "--pid", "4194305"], "no process 4194305"),
        (vec![folder, "--once", "--machine", "none-such"], "none-such"),
    ] {
        let output = top(&arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(
            error.contains(says) && error.trim_end().lines().count() == 1,
            "{arguments:?}: {error}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn nothing_is_left_of_a_recording_that_failed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("top-nothing-left");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(NODEWISE);
    let output = command
        .args(["top", "--once", "--pid", "4194305"])
        .env("TMPDIR", &folder)
        .output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
