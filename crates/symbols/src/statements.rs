//! The statements of a source line, however they are nested.

use crate::naming::is_word;
use std::ops::Range;

/// A statement, or the part of it that is on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Bytes of the line, without the semicolon.
    pub range: Range<usize>,
    /// Text of the statement, as long as `range`; comments, quoted text and statements inside its blocks are replaced
    /// by blanks.
    pub text: String,
}

/// All statements of a line; those of a block come before the one that has the block.
pub(crate) fn statements(line: &str) -> Vec<Statement> {
    let code = blanked(line);
    let mut found = Vec::new();
    collect(&code, 0..code.len(), &mut found);
    found
}

/// The innermost statement at a byte of the line.
pub(crate) fn statement_at(statements: &[Statement], at: usize) -> Option<&Statement> {
    let inside = |s: &&Statement| (s.range.start..=s.range.end).contains(&at);
    let found = statements.iter().filter(inside).min_by_key(|s| s.range.len());
    found.or(statements.last())
}

/// The line with comments and quoted text replaced by blanks.
fn blanked(line: &str) -> String {
    let mut bytes = line.as_bytes().to_vec();
    let mut i = 0;
    while i < bytes.len() {
        let rest = &line.as_bytes()[i..];
        let end = match rest[0] {
            b'/' if rest.starts_with(b"//") => Some(bytes.len()),
            b'/' if rest.starts_with(b"/*") => Some(find(line, i + 2, "*/").map_or(bytes.len(), |e| e + 2)),
            // A digit separator is no quote.
            b'\'' if i > 0 && bytes[i - 1].is_ascii_alphanumeric() => None,
            quote @ (b'"' | b'\'') => closing(line.as_bytes(), i + 1, quote),
            _ => None,
        };
        let Some(end) = end else {
            i += 1;
            continue;
        };
        let is_quote = rest[0] != b'/';
        let inside = i + usize::from(is_quote)..end;
        bytes[inside].fill(b' ');
        i = end + usize::from(is_quote);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

fn find(line: &str, from: usize, text: &str) -> Option<usize> {
    line.get(from..)?.find(text).map(|at| from + at)
}

/// Position of the closing quote, if it is on this line.
fn closing(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut i = from;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            byte if byte == quote => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Finds the statements of a part of the code.
fn collect(code: &str, part: Range<usize>, found: &mut Vec<Statement>) {
    let bytes = code.as_bytes();
    let (mut start, mut i, mut depth) = (part.start, part.start, 0i32);
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let end = |range: Range<usize>, blocks: &mut Vec<Range<usize>>, found: &mut Vec<Statement>| {
        let mut text = bytes[range.clone()].to_vec();
        for block in blocks.drain(..) {
            text[block.start - range.start..block.end - range.start].fill(b' ');
        }
        let text = String::from_utf8(text).unwrap_or_default();
        found.push(Statement { range, text });
    };
    while i < part.end {
        match bytes[i] {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth <= 0 => {
                end(start..i, &mut blocks, found);
                (start, depth) = (i + 1, 0);
            }
            b'{' => {
                let close = matching(bytes, i, part.end);
                if is_block(code, start, i..close) {
                    collect(code, i + 1..close, found);
                    blocks.push(i + 1..close);
                    // A class's block is followed by its variables.
                    if depth <= 0 && close < part.end && !declares_type(&code[start..i]) {
                        end(start..close + 1, &mut blocks, found);
                        (start, depth) = (close + 1, 0);
                    }
                }
                i = close;
            }
            b'}' => {
                end(start..i, &mut blocks, found);
                (start, depth) = (i + 1, 0);
            }
            _ => {}
        }
        i += 1;
    }
    end(start..part.end, &mut blocks, found);
}

/// Position of the brace that closes the one at `open`, or `end`.
fn matching(bytes: &[u8], open: usize, end: usize) -> usize {
    let mut depth = 0;
    (open..end)
        .find(|&i| {
            depth += i32::from(bytes[i] == b'{') - i32::from(bytes[i] == b'}');
            depth == 0
        })
        .unwrap_or(end)
}

/// Whether braces contain statements instead of values: a statement ends inside them, or they follow a header and are
/// not closed.
fn is_block(code: &str, start: usize, braces: Range<usize>) -> bool {
    let inside = &code.as_bytes()[braces.start + 1..braces.end];
    let mut depth = 0;
    let ends = inside.iter().any(|byte| {
        depth += i32::from(b"([{".contains(byte)) - i32::from(b")]}".contains(byte));
        *byte == b';' && depth == 0
    });
    let before = code[start..braces.start].trim_end();
    let header =
        before.is_empty() || before.ends_with(')') || before.ends_with("else") || before.ends_with("do");
    ends || (header && braces.end == code.len())
}

fn declares_type(text: &str) -> bool {
    let types = ["struct", "class", "union", "enum"];
    !text.contains('(') && text.split(|c| !is_word(c)).any(|word| types.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let found = statements(line).into_iter();
        let texts = found.map(|s| s.text.split_whitespace().collect::<Vec<_>>().join(" "));
        texts.filter(|t| !t.is_empty()).collect()
    }

    #[test]
    fn blocks_have_statements_of_their_own() {
        for (line, all) in [
            ("a = f(n); b = g(n);", "a = f(n)|b = g(n)"),
            (
                "namespace deep { int a(3); float *w = new float[1]; }",
                "int a(3)|float *w = new float[1]|namespace deep { }",
            ),
            (
                "void f(int n){ a.resize(n); b = g(n); } int c;",
                "a.resize(n)|b = g(n)|void f(int n){ }|int c",
            ),
            (
                "for (int i = 0; i < n; i++) { x[i] = f(i); } y = 1;",
                "x[i] = f(i)|for (int i = 0; i < n; i++) { }|y = 1",
            ),
            (
                "std::thread t([&]{ int w(9); g(); }); u = 2;",
                "int w(9)|g()|std::thread t([&]{ })|u = 2",
            ),
            (
                "struct S { float *w; S() : w(new float[3]) {} } s;",
                "float *w|S() : w(new float[3]) {}|struct S { } s",
            ),
            (
                "int *p = new int[2]{1, 2}; q{n}; } r = 3;",
                "int *p = new int[2]{1, 2}|q{n}|r = 3",
            ),
            ("void f() { a = new int[n],", "a = new int[n],|void f() {"),
            (
                "g(\"a = b; // {\"); /* c = d; */ e = ';'; // f = g;",
                "g(\" \")|e = ' '",
            ),
            ("x = 1'000'000; y = 'it", "x = 1'000'000|y = 'it"),
        ] {
            assert_eq!(texts(line).join("|"), all, "{line}");
        }
    }

    #[test]
    fn any_line_has_statements_as_long_as_their_ranges() {
        for line in [
            "",
            "}}{{;;",
            "(;{;)};]",
            "° { °; } '°' \"°;\\\" /* °",
            "{ a; { b; } c",
        ] {
            for statement in statements(line) {
                assert_eq!(statement.text.len(), statement.range.len(), "{line}");
            }
            assert!(statement_at(&statements(line), 99).is_some(), "{line}");
        }
    }
}
