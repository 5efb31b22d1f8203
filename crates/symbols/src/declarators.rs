//! Several objects allocated on one line.

use crate::assigned_variable;
use crate::naming::allocation;

/// The variables of a line that allocate, in order: `a` and `b` for
/// `double *a = malloc(n), *b = malloc(n);` and for `std::vector<double> a(n), b(n); double s = 0;`.
/// Empty where none is seen to allocate; [`assigned_variable`] may still know one.
#[must_use]
pub fn allocated_variables(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or(line);
    let statements = split(code, ';').into_iter();
    statements.flat_map(of_statement).collect()
}

fn of_statement(statement: &str) -> Vec<String> {
    let pieces = split(statement, ',');
    let ends = pieces[0].rfind('>').map_or("", |end| &statement[..=end]);
    let container = if ends.contains('<') && !ends.ends_with("->") {
        ends
    } else {
        ""
    };
    let name = |(i, piece): (usize, &&str)| {
        if allocates(piece) {
            return assigned_variable(piece);
        }
        let word = piece
            .strip_prefix(container)
            .filter(|_| i == 0)
            .unwrap_or(piece)
            .trim_start();
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let constructed = !container.is_empty() && word[end..].starts_with(['(', '{']);
        (constructed && end > 0).then(|| word[..end].to_owned())
    };
    pieces.iter().enumerate().filter_map(name).collect()
}

fn allocates(piece: &str) -> bool {
    let at = allocation(piece).unwrap_or(0);
    piece[..at].contains('=')
}

/// Cuts at a character outside all brackets; `<` is one only right after a word.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut before) = (Vec::new(), 0, 0usize, ' ');
    let mut angles = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '<' if before.is_alphanumeric() => angles += 1,
            '>' if before != '-' => angles = angles.saturating_sub(1),
            _ if c == at && depth == 0 && angles == 0 => {
                parts.push(&text[start..i]);
                start = i + c.len_utf8();
            }
            _ => {}
        }
        before = c;
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocation_of_a_line_has_its_name() {
        for (line, names) in [
            (
                "  double *a = malloc(n * 8), *b = malloc(n * 8), *k = malloc(n);",
                "a b k",
            ),
            ("  std::vector<double> a(n, 1.0), b(n); double s = 0;", "a b"),
            ("  std::map<int, double> m{x, y};", "m"),
            ("  a = new double[n]; b = new double[n];", "a b"),
            ("  int n = 5, *p = calloc(n, 4); // q = malloc(1)", "p"),
            ("  for (int i = 0; i < 4; i++) row[i] = malloc(n);", "row"),
            ("  return f(1, 2);", ""),
            ("  grid->init(n), grid->fill(n);", ""),
            ("  if (a > b) print(a);", ""),
            ("", ""),
        ] {
            assert_eq!(allocated_variables(line).join(" "), names, "{line}");
        }
    }
}
