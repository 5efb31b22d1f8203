//! Files and screens that commands write to.

use anyhow::{Context, bail};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Writes a file whole or not at all; an existing one stays unless `force` is set.
pub fn write_file(file: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    if file.exists() && !force {
        bail!(
            "{}: exists already; choose another name or add --force",
            file.display()
        );
    }
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, file))
        .inspect_err(|_| drop(std::fs::remove_file(&partial)))
        .with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("nodewise: wrote {}", file.display());
    Ok(())
}

/// Writes to standard output; a reader that has seen enough, such as `head`, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => bail!("cannot write to standard output: {e}"),
        _ => Ok(()),
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
    use super::Screen;

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
