//! Writes files, standard output and standard error.

use anyhow::{Context, bail};
use nodewise_linux::files;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Writes a file as [`replace_file`] does and says so; an existing one is kept unless `force` is set.
pub fn write_file(file: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    if !is_stdout(file) {
        keep_existing(file, force)?;
    }
    replace_file(file, text)?;
    if !is_stdout(file) {
        say!("wrote {}", file.display());
    }
    Ok(())
}

/// Writes a file atomically, silently: its name was checked with [`check_new`] before a program ran. Symbolic links are
/// followed; a pipe or device is written to and not replaced. `-` is standard output.
pub fn replace_file(file: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdout(file) {
        return print(text);
    }
    files::replace(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}

/// Checks, before a program runs for hours, that none of these files exists, unless `force` is set, that none is a
/// folder, and that their folders exist. Standard output can always be named.
pub fn check_new<'a>(files: impl IntoIterator<Item = &'a PathBuf>, force: bool) -> anyhow::Result<()> {
    for file in files.into_iter().filter(|file| !is_stdout(file)) {
        if file.is_dir() || file.file_name().is_none() {
            bail!("{}: is a folder; name a file", file.display());
        }
        keep_existing(file, force)?;
        check_folder(file)?;
    }
    Ok(())
}

/// Checks that what is written to this file has a folder to be in.
pub fn check_folder(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|f| !f.as_os_str().is_empty());
    match folder.filter(|f| !f.is_dir()) {
        Some(folder) => bail!(
            "{}: there is no folder {}; make it first",
            file.display(),
            folder.display()
        ),
        None => Ok(()),
    }
}

/// Refuses a file that is there, also as a link that leads nowhere, unless `force` is set. Nothing is lost in a device or a
/// pipe, as of `>(command)`.
pub fn keep_existing(file: &Path, force: bool) -> anyhow::Result<()> {
    let keeps = |found: std::fs::Metadata| found.is_file() || found.is_dir();
    let there = file.symlink_metadata().is_ok() && file.metadata().map_or(true, keeps);
    match there && !force {
        true => bail!(
            "{}: exists already; choose another name or add --force",
            file.display()
        ),
        false => Ok(()),
    }
}

/// Refuses standard output for an option whose file has to have a name: `why` it has to.
pub fn check_named(option: &str, file: Option<&PathBuf>, why: &str) -> anyhow::Result<()> {
    match file.filter(|file| is_stdout(file)) {
        Some(file) => bail!("{option} {}: {why}; name a file", file.display()),
        None => Ok(()),
    }
}

/// Whether the path is `-` or one of the system's names for standard output.
fn is_stdout(file: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| file == Path::new(name))
}

/// A command line to copy, with words quoted where a shell needs it.
pub fn command_line(program: &str, file: &Path) -> String {
    let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
    nodewise_input::shell_line(&[words, vec![file.display().to_string()]].concat())
}

/// Prints `nodewise: …` on standard error; takes arguments like `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::message(&format!($($argument)*)) };
}
pub(crate) use say;

/// Prints a line on standard error in one write. Errors are ignored, as they cannot be reported: `eprintln!` would
/// panic, and the observed program's exit status would be lost.
pub fn message(text: &str) {
    let _ = std::io::stderr().write_all(format!("nodewise: {}\n", nodewise_input::one_line(text)).as_bytes());
}

/// Escapes control characters except line breaks, tabs and the colour sequences of [`Screen::paint`].
fn harmless(text: &str) -> Cow<'_, str> {
    let suspicious = |c: char| (c.is_control() && c != '\n' && c != '\t') || nodewise_input::reorders(c);
    if !text.contains(suspicious) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            c if !suspicious(c) || is_colour(&text[at..]) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Whether the text begins with a colour sequence `ESC [ digits m`.
fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix("\x1b[").unwrap_or_default();
    digits
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .starts_with('m')
}

/// Writes to standard output; it is no error if its reader has gone, such as `head`. Control characters other than
/// colours are escaped, because names come from profiles and programs of any origin.
pub fn print(text: &str) -> anyhow::Result<()> {
    printed(std::io::stdout().write_all(harmless(text).as_bytes()))
}

/// Converts the result of writing a document to standard output to that of a command.
pub fn printed(result: std::io::Result<()>) -> anyhow::Result<()> {
    match result.and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => bail!("cannot write to standard output: {e}"),
        Ok(()) if nodewise_linux::stdout::was_closed() => {
            bail!("cannot write to standard output: it is closed")
        }
        Ok(()) => Ok(()),
    }
}

/// Properties of the terminal that text on standard output is for.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Width in columns; 100 where standard output is no terminal.
    pub width: usize,
    /// Whether escape sequences are understood and wanted (<https://no-color.org>).
    pub colour: bool,
}

impl Screen {
    /// The properties of standard output.
    pub fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let size = terminal_size::terminal_size().filter(|_| terminal);
        Self {
            width: size.map_or(100, |(width, _)| usize::from(width.0).max(40)),
            colour: terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// The text in one of the terminal's colours or styles (31 red, 32 green, 33 yellow; 1 bold, 2 faint).
    pub fn paint(self, code: u32, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// `head` and the words after it, broken at the terminal's width; further lines are indented by the width of the
    /// head.
    pub fn wrap<'a>(self, head: &str, words: impl IntoIterator<Item = &'a str>) -> String {
        let indent = head.chars().count();
        let (mut out, mut column) = (head.to_owned(), indent);
        for (index, word) in words.into_iter().enumerate() {
            let length = word.chars().count();
            if index > 0 && column + 1 + length > self.width {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else if index > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Screen, harmless};

    #[test]
    fn documents_keep_lines_and_colours_and_no_other_control_characters() {
        let screen = Screen {
            width: 80,
            colour: true,
        };
        let kept = format!("a\tb\n{}", screen.paint(31, "c"));
        assert_eq!(harmless(&kept), kept);
        let hostile = "\x1b]0;title\x07\x1b[2Jx\x1b[\r\u{9b}y";
        assert_eq!(
            harmless(hostile),
            "\\u{1b}]0;title\\u{7}\\u{1b}[2Jx\\u{1b}[\\u{d}\\u{9b}y"
        );
    }

    #[test]
    fn wrapped_text_keeps_its_words_and_its_width() {
        let screen = Screen {
            width: 20,
            colour: false,
        };
        let text = screen.wrap("  links  ", "0-1 at 5.6 GB/s and on".split(' '));
        assert_eq!(text, "  links  0-1 at 5.6\n         GB/s and on\n");
        assert!(text.lines().all(|l| l.chars().count() <= 20));
    }
}
