//! Quotes untrusted text in messages: as one line of limited length, without control characters.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Largest number of characters of a name that are shown.
const MAX_NAME_LENGTH: usize = 80;
/// Largest number of characters of a message that are shown, in case it contains a very long argument.
const MAX_MESSAGE_LENGTH: usize = 2000;

/// A name or value from a file or an argument, in backquotes, shortened and escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("`{}`", shown(text, MAX_NAME_LENGTH))
}

/// Text of any origin as one line that is safe to print: line breaks become spaces, other control characters are
/// escaped, and the middle of a very long text is omitted.
#[must_use]
pub fn one_line(text: &str) -> String {
    shown(text, MAX_MESSAGE_LENGTH)
}

/// Text of any length that is safe to print, escaped as by [`one_line`].
#[must_use]
pub fn escaped(text: &str) -> String {
    shown(text, usize::MAX)
}

/// A command line to copy, with words quoted where a shell needs it.
#[must_use]
pub fn shell_line(command: &[impl AsRef<OsStr>]) -> String {
    let words: Vec<_> = command.iter().map(shell_word).collect();
    words.join(" ")
}

/// One word of a command line, quoted where a shell needs it. Bytes that are not UTF-8 are written as `$'\xff'`, which
/// bash, zsh and ksh understand.
#[must_use]
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.to_str() {
        Some(w) if !w.is_empty() && w.chars().all(plain) => w.to_owned(),
        Some(w) => format!("'{}'", w.replace('\'', "'\\''")),
        None => {
            let byte = |b: &u8| match char::from(*b) {
                c if plain(c) => c.to_string(),
                _ => format!("\\x{b:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
}

fn shown(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(2 * most));
    let left_out = text.chars().count().saturating_sub(most);
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if left_out > 0 && (most / 2..most / 2 + left_out).contains(&index) => {
                if index == most / 2 {
                    line += &format!("[{left_out} characters]");
                }
            }
            '\n' | '\r' | '\t' => line.push(' '),
            c if c.is_control() || reorders(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Whether a character reorders or hides the text around it.
#[must_use]
pub fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_one_line_without_control_characters_and_not_endless() {
        assert_eq!(one_line("a\nb\x1b[31mc\u{202e}d"), "a b\\u{1b}[31mc\\u{202e}d");
        assert_eq!(one_line("naïve: 5 µs …"), "naïve: 5 µs …");
        let long = format!("begin{}end", "é".repeat(1 << 20));
        let line = one_line(&long);
        assert!(
            line.starts_with("begin") && line.ends_with("end"),
            "both ends stay"
        );
        assert!(line.contains("[1046584 characters]") && line.chars().count() < MAX_MESSAGE_LENGTH + 40);
        assert!(quoted(&long).chars().count() < MAX_NAME_LENGTH + 40);
        assert_eq!(quoted("mixed:0.9"), "`mixed:0.9`");
    }

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(shell_line(&words("./a|-n|10")), "./a -n 10");
        assert_eq!(shell_line(&words("./a|it's|x y|")), r"./a 'it'\''s' 'x y' ''");
        let foreign = OsStr::from_bytes(b"caf\xe9 'b\\");
        let line = format!("printf %s {}", shell_word(foreign));
        assert_eq!(line, r"printf %s $'caf\xe9\x20\x27b\x5c'");
        let Ok(read) = std::process::Command::new("bash").args(["-c", &line]).output() else {
            return;
        };
        assert_eq!(read.stdout, foreign.as_bytes());
    }

    proptest! {
        #[test]
        fn whatever_is_quoted_is_one_printable_line(text in any::<String>()) {
            prop_assert!(one_line(&text).chars().chain(quoted(&text).chars()).all(|c| !c.is_control() && !reorders(c)));
        }
    }
}
