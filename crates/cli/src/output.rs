//! Files and screens that commands write to.

use anyhow::{Context, bail};
use nodewise_linux::files;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Writes a file whole or not at all; an existing one stays unless `force` is set. Links are followed;
/// what is no regular file (a pipe, a device) is written to and stays what it is. `-` is standard output.
pub fn write_file(file: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    if is_stdout(file) {
        return print(text);
    }
    if file.symlink_metadata().is_ok() && !force {
        bail!(
            "{}: exists already; choose another name or add --force",
            file.display()
        );
    }
    files::replace(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    say!("wrote {}", file.display());
    Ok(())
}

/// Before a program runs for hours: none of these files exists, unless `force` is set, and each has a folder.
pub fn check_new<'a>(files: impl Iterator<Item = &'a Path>, force: bool) -> anyhow::Result<()> {
    for file in files {
        if file.exists() && !force {
            bail!("{} exists; --force replaces it", file.display());
        }
        let folder = file.parent().filter(|f| !f.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|f| !f.is_dir()) {
            bail!("{}: there is no folder {}", file.display(), folder.display());
        }
    }
    Ok(())
}

/// `-`, or one of the names that the system has for it.
fn is_stdout(file: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| file == Path::new(name))
}

/// A command to copy: words quoted where a shell needs it.
pub fn command_line(program: &str, file: &Path) -> String {
    let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
    nodewise_input::shell_line(&[words, vec![file.display().to_string()]].concat())
}

/// A line on standard error, as `nodewise: …`, formatted like `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::message(&format!($($argument)*)) };
}
pub(crate) use say;

/// One line on standard error in one write. Where it cannot be written there is no one to tell, and what the
/// command does goes on: `eprintln!` would panic, in place of the observed program's exit status.
pub fn message(text: &str) {
    let _ = std::io::stderr().write_all(format!("nodewise: {}\n", nodewise_input::one_line(text)).as_bytes());
}

/// Text without control characters but line breaks, tabs and the sequences of [`Screen::paint`].
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

/// Whether the text begins with `ESC [ digits m`.
fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix("\x1b[").unwrap_or_default();
    digits
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .starts_with('m')
}

/// Writes to standard output; a reader that has seen enough, such as `head`, is no error. Names come from
/// profiles and programs of any origin: what would change more of a terminal than a colour is escaped.
pub fn print(text: &str) -> anyhow::Result<()> {
    printed(std::io::stdout().write_all(harmless(text).as_bytes()))
}

/// What came of writing a document to standard output.
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

/// What text on standard output may use.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether escape sequences are understood and wanted (<https://no-color.org>).
    pub colour: bool,
}

impl Screen {
    /// Standard output as it is.
    pub fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let size = terminal_size::terminal_size().filter(|_| terminal);
        Self {
            width: size.map_or(100, |(width, _)| usize::from(width.0).max(40)),
            colour: terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// Text in one of the terminal's colours (31 red, 32 green, 33 yellow; 1 bold, 2 faint).
    pub fn paint(self, code: u32, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// `head` and the words after it, broken at this width; further lines are indented as deep as
    /// the head is long.
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
