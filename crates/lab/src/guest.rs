//! The QEMU process: starts it, reads its output, and ends it together with this process.

use crate::qemu::{self, Channels};
use crate::{Lab, LabError};
use nodewise_linux::child::depend;
use nodewise_linux::memfd::{never_block, wait_readable};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Streams from the guest and its emulator, without those that only explain a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Control,
    Output,
    Errors,
    Rows,
}

/// Number of bytes kept of the latest output of the console, and of QEMU itself.
const OUTPUT_TAIL_BYTES: usize = 16 << 10;
/// Time for QEMU to end by itself after it has closed its files.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 1 << 18;

const NO_MEMORY: &str = "out of memory, which files take as well: --memory gives it more";

/// A running QEMU; killed when dropped.
pub(crate) struct Guest {
    child: Child,
    control: PipeReader,
    output: PipeReader,
    errors: PipeReader,
    rows: PipeReader,
    console: PipeReader,
    qemu: PipeReader,
    console_tail: Vec<u8>,
    qemu_tail: Vec<u8>,
    ended: Option<ExitStatus>,
}

impl Guest {
    pub fn start(lab: &Lab) -> Result<Self, LabError> {
        let failed = |e: std::io::Error| LabError::own(format!("cannot make pipes for the guest: {e}"));
        let channel = || -> Result<(PipeReader, PipeWriter), LabError> {
            let (reader, writer) = pipe().map_err(failed)?;
            never_block(reader.as_fd()).map_err(failed)?;
            Ok((reader, writer))
        };
        let (control, to_control) = channel()?;
        let (output, to_output) = channel()?;
        let (errors, to_errors) = channel()?;
        let (rows, to_rows) = channel()?;
        let (console, to_console) = channel()?;
        let (qemu, to_qemu) = channel()?;
        let channels = Channels {
            console: to_console.as_raw_fd(),
            control: to_control.as_raw_fd(),
            output: to_output.as_raw_fd(),
            errors: to_errors.as_raw_fd(),
            rows: to_rows.as_raw_fd(),
        };
        let described = qemu::Guest {
            machine: &lab.machine,
            kernel: &lab.kernel.file,
            image: &lab.image,
            disk: lab.disk.as_ref(),
            kernel_arguments: lab.kernel_arguments.clone(),
            plugin: lab.plugin.as_deref(),
        };
        let mut inherited = channels.all();
        inherited.extend([lab.kernel.file.as_raw_fd(), lab.image.as_raw_fd()]);
        inherited.extend(lab.disk.as_ref().map(AsRawFd::as_raw_fd));
        let mut command = Command::new(&lab.qemu.program);
        command
            .args(described.arguments(&channels))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(to_qemu);
        let child = depend(&mut command, inherited)
            .spawn()
            .map_err(|e| LabError::io("start", &lab.qemu.program, &e))?;
        Ok(Self {
            child,
            control,
            output,
            errors,
            rows,
            console,
            qemu,
            console_tail: Vec::new(),
            qemu_tail: Vec::new(),
            ended: None,
        })
    }

    /// Waits for output for at most `pause`, and passes on all that there is. Returns false when there can be no more.
    pub fn read(&mut self, pause: Duration, take: &mut dyn FnMut(Stream, &[u8])) -> Result<bool, LabError> {
        let all: [BorrowedFd<'_>; 6] = [
            self.control.as_fd(),
            self.output.as_fd(),
            self.errors.as_fd(),
            self.rows.as_fd(),
            self.console.as_fd(),
            self.qemu.as_fd(),
        ];
        wait_readable(&all, pause).map_err(|e| LabError::own(format!("cannot wait for the guest: {e}")))?;
        // Control messages report what has already happened on other streams. So the control channel is read first, but
        // passed on last.
        let mut output = Vec::new();
        let open = read_all(&mut self.control, &mut |bytes| output.extend(bytes));
        read_all(&mut self.output, &mut |bytes| take(Stream::Output, bytes));
        read_all(&mut self.errors, &mut |bytes| take(Stream::Errors, bytes));
        read_all(&mut self.rows, &mut |bytes| take(Stream::Rows, bytes));
        read_all(&mut self.console, &mut |bytes| {
            keep_last(&mut self.console_tail, bytes);
        });
        read_all(&mut self.qemu, &mut |bytes| keep_last(&mut self.qemu_tail, bytes));
        take(Stream::Control, &output);
        Ok(open)
    }

    /// Ends QEMU (after a short wait if it is ending `by_itself`), and passes on its remaining output.
    pub fn end(&mut self, take: &mut dyn FnMut(Stream, &[u8]), by_itself: bool) {
        let until = Instant::now() + EXIT_TIMEOUT;
        while by_itself && matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            sleep(Duration::from_millis(5));
        }
        self.kill();
        while let Ok(true) = self.read(Duration::ZERO, take) {}
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }

    /// An error that says why the guest ended early, as far as this is known.
    pub fn failure_reason(&self, was_up: bool) -> LabError {
        let text = |output: &[u8]| String::from_utf8_lossy(output).into_owned();
        let failed = self.ended.filter(|status| !status.success());
        let why = failure_reason(&text(&self.console_tail), &text(&self.qemu_tail), failed);
        let silent = || match self.ended {
            Some(status) => format!("QEMU ended without a word ({status})"),
            None => "it said nothing".to_owned(),
        };
        let why = why.unwrap_or_else(silent);
        let when = if was_up { "broke" } else { "did not come up" };
        LabError::own(format!("the guest {when}: {why}"))
    }

    /// Whether there was no output, neither from the kernel nor from QEMU.
    pub fn is_silent(&self) -> bool {
        let blank = |output: &[u8]| {
            String::from_utf8_lossy(output)
                .lines()
                .all(|l| clean(l).is_empty())
        };
        blank(&self.console_tail) && blank(&self.qemu_tail)
    }

    /// Whether the kernel ended at a breakpoint of its own. When Linux changes its code while several CPUs run, it puts
    /// one there for a moment; the emulator may execute what it translated then after the breakpoint has gone. Seen with
    /// QEMU 7.2 and Linux 6.12, in one of three to ten starts with a disk, whose driver works while the kernel patches
    /// `sched_clock`.
    pub fn has_tripped(&self) -> bool {
        String::from_utf8_lossy(&self.console_tail).contains(TRIPPED)
    }

    /// Checks that all files were unpacked: the kernel skips what does not fit into memory, and goes on.
    pub fn check_files(&self) -> Result<(), LabError> {
        if unpacked(&self.console_tail) {
            return Ok(());
        }
        Err(LabError::own(
            "the guest's files do not fit into its memory: more by --memory, or less --with",
        ))
    }

    /// Whether the guest's kernel killed a process because memory ran out.
    pub fn ran_out_of_memory(&self) -> bool {
        let console = String::from_utf8_lossy(&self.console_tail).into_owned();
        console.contains("Out of memory: Killed process")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads until there is no more output for now; returns false at the end of the stream.
fn read_all(pipe: &mut PipeReader, take: &mut dyn FnMut(&[u8])) -> bool {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match pipe.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => take(&bytes[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn unpacked(console: &[u8]) -> bool {
    !String::from_utf8_lossy(console).contains("Initramfs unpacking failed")
}

fn keep_last(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend(bytes);
    let extra = kept.len().saturating_sub(OUTPUT_TAIL_BYTES);
    kept.drain(..extra);
}

/// What the kernel says when it met a breakpoint of its own ([`Guest::has_tripped`]), and what we do.
const TRIPPED: &str = "Oops: int3";
const BREAKPOINT: &str =
    "the emulator executed a breakpoint that the kernel had removed, a fault of QEMU: run it again";

/// The most informative line: the kernel's reason, else that of a QEMU that failed, the counter's, the emulator's, else
/// the last line of any output.
fn failure_reason(console: &str, qemu: &str, failed: Option<ExitStatus>) -> Option<String> {
    let last_line = |text: &str, part: &str| text.lines().rfind(|l| l.contains(part)).map(clean);
    let last = |text: &str| text.lines().rev().map(clean).find(|l| !l.is_empty());
    let of_failed = || Some(format!("QEMU ended ({}): {}", failed?, last(qemu)?));
    last_line(console, "deadlocked on memory")
        .map(|_| NO_MEMORY.to_owned())
        .or_else(|| console.contains(TRIPPED).then(|| BREAKPOINT.to_owned()))
        .or_else(|| Some(panic(&last_line(console, "Kernel panic")?, console)))
        .or_else(|| last_line(console, "Out of memory"))
        .or_else(of_failed)
        .or_else(|| last_line(qemu, "nodewise: counter"))
        .or_else(|| last_line(qemu, "qemu-system"))
        .or_else(|| last(console))
        .or_else(|| last(qemu))
}

/// What the kernel says of a panic, with what led to it and where, if it says so.
fn panic(said: &str, console: &str) -> String {
    let line = |parts: &[&str]| {
        console
            .lines()
            .map(clean)
            .find(|l| parts.iter().any(|part| l.contains(part)))
    };
    let causes = [line(&["BUG:", "Oops:"]), line(&["RIP: "])];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    match causes.is_empty() {
        true => said.to_owned(),
        false => format!("{said} ({})", causes.join("; ")),
    }
}

/// A line without its time stamp and without control characters.
fn clean(line: &str) -> String {
    let line = line.trim();
    let text = match line.split_once("] ") {
        Some((stamp, text)) if stamp.starts_with('[') => text,
        _ => line,
    };
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn files_that_were_left_out_are_noticed() {
        assert!(unpacked(b"[    0.9] Loading\r\n"));
        assert!(!unpacked(
            b"[    1.0] Initramfs unpacking failed: write error\r\n[    1.1] Run"
        ));
    }

    #[test]
    fn the_line_that_tells_most_is_given() {
        let last_line = |console, qemu| failure_reason(console, qemu, None).unwrap();
        let console =
            "[    1.2] Loading\r\n[    2.0] Kernel panic - not syncing: no init\r\n[    2.1] Rebooting\r\n";
        assert_eq!(last_line(console, ""), "Kernel panic - not syncing: no init");
        let oops = "[    3.0] BUG: unable to handle page fault\r\n[    3.0] Oops: 0000\r\n[    3.0] RIP: 0010:f+0x1/0x2\r\n[    3.1] Kernel \
                    panic - not syncing: Fatal exception\r\n";
        assert_eq!(
            last_line(oops, ""),
            "Kernel panic - not syncing: Fatal exception (BUG: unable to handle page fault; RIP: 0010:f+0x1/0x2)"
        );
        let tripped = oops.replace("0000", "int3");
        assert_eq!(failure_reason(&tripped, "", None).unwrap(), BREAKPOINT);
        let full = "Kernel panic - not syncing: System is deadlocked on memory\r\n";
        assert_eq!(last_line(full, ""), NO_MEMORY);
        let qemu = "warning\nqemu-system-x86_64: -m 9T: cannot allocate memory\n";
        assert_eq!(
            last_line("", qemu),
            "qemu-system-x86_64: -m 9T: cannot allocate memory"
        );
        assert_eq!(last_line("\u{1b}[2JBooting\n\n", ""), "[2JBooting");
        assert_eq!(failure_reason("", "", None), None);
        let failed = Some(ExitStatus::from_raw(1 << 8));
        assert_eq!(
            failure_reason("Booting\n", "first\nno such machine\n", failed).unwrap(),
            "QEMU ended (exit status: 1): no such machine"
        );
        assert_eq!(failure_reason("", "", failed), None);
    }

    #[test]
    fn only_the_last_is_kept() {
        let mut kept = Vec::new();
        keep_last(&mut kept, &vec![b'a'; OUTPUT_TAIL_BYTES]);
        keep_last(&mut kept, b"end");
        assert_eq!((kept.len(), kept.ends_with(b"aend")), (OUTPUT_TAIL_BYTES, true));
    }
}
