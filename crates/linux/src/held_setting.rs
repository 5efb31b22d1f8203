//! A setting of the kernel for all processes, held by one of our processes at a time and put back.

use crate::cleanup_process;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, PipeWriter};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest number of files of a setting.
const MOST: usize = 65;

/// Numbers that the kernel keeps in files, one each.
pub(crate) struct Setting {
    /// What it is, in messages.
    pub(crate) what: &'static str,
    /// Name of the note, and of the process that puts the setting back.
    pub(crate) name: &'static CStr,
    /// One for each value, in the order of the values.
    pub(crate) files: Vec<PathBuf>,
    /// How to write these values: files by number, each with what is written, in order.
    pub(crate) writes: fn(&[u32]) -> Vec<(usize, u32)>,
    /// What a file, by number, holds while a change is being made, besides old and new.
    pub(crate) meanwhile: Option<(usize, u32)>,
    /// Which of them are put back where others changed some.
    pub(crate) separate: Separate,
}

/// Which files are put back where others changed some of them meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separate {
    /// None: all are as we left them, or all stay.
    No,
    /// Those that are as we left them, but for this number of files at the end.
    AllBut(usize),
}

impl Setting {
    fn write(&self, values: &[u32]) -> io::Result<()> {
        (self.writes)(values).into_iter().try_for_each(|(file, value)| {
            let path = &self.files[file];
            std::fs::write(path, value.to_string())
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
        })
    }
}

/// Exclusive ownership of the setting within this program's processes. The old values are restored when this is
/// dropped, and by a keeper process when this process ends in any other way. If the keeper is killed too, the next
/// owner finds the old values in a note. A setting that was changed by others meanwhile is left as it is.
pub struct HeldSetting {
    setting: Setting,
    /// The note; locked by this process and the keeper.
    note: File,
    /// A pipe to the keeper, which the kernel closes when this process ends.
    alive: Option<PipeWriter>,
    keeper: libc::pid_t,
}

impl HeldSetting {
    /// Takes ownership of a setting, and changes it. The note is kept in `folder`. `now` reads the values, once nobody else
    /// changes them; `wanted` makes of them those to set.
    ///
    /// # Errors
    /// It cannot be read or written, or another of our processes has it: `WouldBlock`.
    pub(crate) fn take(
        folder: &Path,
        setting: Setting,
        now: impl FnOnce() -> io::Result<Vec<u32>>,
        wanted: impl FnOnce(&[u32]) -> io::Result<Vec<u32>>,
    ) -> io::Result<Self> {
        if setting.files.len() > MOST {
            return Err(io::Error::other(format!("more than {MOST} files")));
        }
        let file = lock(folder, &setting)?;
        let now = &*now()?;
        if now.len() != setting.files.len() {
            return Err(io::Error::other(format!(
                "the kernel's {} have changed",
                setting.what
            )));
        }
        let values = wanted(now)?;
        // A note of another number of files was left before a node came or went.
        let same = file.metadata()?.len() == (now.len() * 12) as u64;
        let left = Note::read(&file, now.len()).filter(|left| same && left.explains(now, setting.meanwhile));
        if !same {
            file.set_len(0)?;
        }
        let before = left.map_or_else(|| now.to_vec(), |left| left.before[..now.len()].to_vec());
        Note::new(&before, now, now).write(&file, now.len())?;
        let held = Self::keep(setting, file, &before)?;
        held.set(&values)?;
        Ok(held)
    }

    /// Changes the setting again.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn set(&self, values: &[u32]) -> io::Result<()> {
        if let Some(Note { before, latest, .. }) = Note::read(&self.note, values.len()) {
            Note::new(&before, &latest, values).write(&self.note, values.len())?;
        }
        self.setting.write(values)
    }

    fn keep(setting: Setting, note: File, before: &[u32]) -> io::Result<Self> {
        let named = |file: &Path| CString::new(file.as_os_str().as_bytes()).map_err(io::Error::other);
        let files: io::Result<Vec<CString>> = setting.files.iter().map(|file| named(file)).collect();
        let files = files?;
        let writes: Vec<(usize, String)> = (setting.writes)(before)
            .into_iter()
            .map(|(file, value)| (file, value.to_string()))
            .collect();
        let (reading, alive) = io::pipe()?;
        let kept = [reading.as_raw_fd(), note.as_raw_fd()];
        // SAFETY: system calls alone; what it reads was made before.
        let keeper = unsafe {
            cleanup_process::start(setting.name, &kept, || {
                wait_and_restore(&files, setting.meanwhile, setting.separate, &writes);
            })
        };
        Ok(Self {
            setting,
            note,
            alive: Some(alive),
            keeper: keeper?,
        })
    }

    /// Kills the keeper, as a test of what remains then.
    #[cfg(test)]
    pub(crate) fn kill_keeper(&self) {
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(self.keeper, libc::SIGKILL) };
    }
}

impl Drop for HeldSetting {
    fn drop(&mut self) {
        drop(self.alive.take());
        // SAFETY: the child is ours, and not waited for elsewhere.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

type Numbers = [u32; MOST];

/// The contents of the note: the values of three settings, one after the other, without what the arrays have to spare.
#[derive(Clone, Copy)]
struct Note {
    before: Numbers,
    /// The setting before the latest one, whose writing may have been interrupted.
    earlier: Numbers,
    latest: Numbers,
}

impl Note {
    fn new(before: &[u32], earlier: &[u32], latest: &[u32]) -> Self {
        let padded = |values: &[u32]| {
            let mut numbers = [0; MOST];
            numbers[..values.len()].copy_from_slice(values);
            numbers
        };
        Self {
            before: padded(before),
            earlier: padded(earlier),
            latest: padded(latest),
        }
    }

    /// Reads a note of settings of `count` values; `None` if there is none. Makes a single system call.
    fn read(file: &File, count: usize) -> Option<Self> {
        let mut bytes = [0; 12 * MOST];
        let bytes = &mut bytes[..12 * count];
        file.read_exact_at(bytes, 0).ok()?;
        let mut settings = [[0; MOST]; 3];
        for (i, bytes) in bytes.chunks_exact(4).enumerate() {
            settings[i / count][i % count] = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let [before, earlier, latest] = settings;
        Some(Self {
            before,
            earlier,
            latest,
        })
    }

    fn write(&self, file: &File, count: usize) -> io::Result<()> {
        let settings = [self.before, self.earlier, self.latest];
        let values = settings.iter().flat_map(|setting| &setting[..count]);
        let bytes: Vec<u8> = values.flat_map(|value| value.to_ne_bytes()).collect();
        file.write_all_at(&bytes, 0)
    }

    /// Whether these values were written by us, possibly in part.
    fn explains(&self, values: &[u32], meanwhile: Option<(usize, u32)>) -> bool {
        let explained = |(i, value): (usize, &u32)| self.explains_one(i, *value, meanwhile);
        values.iter().enumerate().all(explained)
    }

    /// Likewise of one file.
    fn explains_one(&self, file: usize, value: u32, meanwhile: Option<(usize, u32)>) -> bool {
        value == self.latest[file] || value == self.earlier[file] || meanwhile == Some((file, value))
    }
}

/// Opens and locks the note; the lock lasts until the last of its owners has ended.
fn lock(folder: &Path, setting: &Setting) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(&*setting.name.to_string_lossy());
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path);
    let file = file.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    if crate::lock::try_exclusive(&file)? {
        return Ok(file);
    }
    let taken = format!("another nodewise has the kernel's {} until it ends", setting.what);
    Err(io::Error::new(io::ErrorKind::WouldBlock, taken))
}

/// Runs in the keeper, which has the pipe as descriptor 0 and the note as 1: the pipe is closed when its parent ends.
fn wait_and_restore(
    files: &[CString],
    meanwhile: Option<(usize, u32)>,
    separate: Separate,
    writes: &[(usize, String)],
) {
    // SAFETY: system calls on our own memory and descriptors; there is no useful reaction to an error of these. The
    // note's descriptor is never closed.
    unsafe {
        let mut byte = 0_u8;
        libc::read(0, (&raw mut byte).cast(), 1);
        let note = ManuallyDrop::new(File::from_raw_fd(1));
        let mut now = [0; MOST];
        for (value, file) in now.iter_mut().zip(files) {
            *value = number(file);
        }
        if let Some(note) = Note::read(&note, files.len()) {
            let all = note.explains(&now[..files.len()], meanwhile);
            let alone = |file: usize| match separate {
                Separate::No => false,
                Separate::AllBut(last) => {
                    file + last < files.len() && note.explains_one(file, now[file], meanwhile)
                }
            };
            for (file, value) in writes.iter().filter(|(file, _)| all || alone(*file)) {
                let descriptor = libc::open(files[*file].as_ptr(), libc::O_WRONLY | libc::O_TRUNC);
                libc::write(descriptor, value.as_ptr().cast(), value.len());
                libc::close(descriptor);
            }
        }
        libc::ftruncate(1, 0);
    }
}

/// The number in a file, by system calls alone; 0 if there is none.
fn number(file: &CStr) -> u32 {
    let mut text = [0_u8; 16];
    // SAFETY: a name that ends in a zero, and room for as much as is asked for.
    let length = unsafe {
        let descriptor = libc::open(file.as_ptr(), libc::O_RDONLY);
        let length = libc::read(descriptor, text.as_mut_ptr().cast(), text.len());
        libc::close(descriptor);
        length
    };
    parse(&text[..usize::try_from(length).unwrap_or(0)])
}

/// The number that a file's text says, a switch's `true` as 1; 0 if it says none. Allocates nothing.
pub(crate) fn parse(text: &[u8]) -> u32 {
    if text.starts_with(b"true") {
        return 1;
    }
    let digits = text.iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |n: u32, digit| {
        n.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
    })
}

/// What another owner left, as soon as the last process that a test beside this one forked meanwhile has closed its copy of
/// the note.
#[cfg(test)]
pub(crate) fn when_free<T>(mut take: impl FnMut() -> io::Result<T>) -> T {
    loop {
        match take() {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            other => return other.unwrap(),
        }
    }
}
