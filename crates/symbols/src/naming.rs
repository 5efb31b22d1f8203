//! What the programmer calls a heap object.

/// The variable or field that a line assigns its allocation to: `rhs` for
/// `double *rhs = malloc(n);`, `grid` for `m->grid = new double[n];`, `a` for
/// `posix_memalign((void **)&a, 64, n);` and `allocate(a(n))`.
#[must_use]
pub fn assigned_variable(line: &str) -> Option<String> {
    let code = line.split("//").next()?;
    by_assignment(code)
        .or_else(|| by_argument(code))
        .or_else(|| by_declaration(code))
}

/// The identifier in `std::vector<double> x(n);`.
fn by_declaration(code: &str) -> Option<String> {
    let rest = code[code.rfind('>')? + 1..].trim_start();
    let end = rest.find(|c: char| !is_word(c))?;
    let name = &rest[..end];
    (is_identifier(name) && rest[end..].starts_with(['(', '{'])).then(|| name.to_owned())
}

/// The identifier left of the last plain `=` before the allocation, its subscript left out.
fn by_assignment(code: &str) -> Option<String> {
    let calls = ["alloc", "new ", "mmap", "memalign"];
    let call = calls
        .iter()
        .filter_map(|c| code.find(c))
        .min()
        .unwrap_or(code.len());
    let equals = plain_assignment(&code[..call])?;
    let target = code[..equals].trim_end();
    let target = target.split('[').next()?.trim_end();
    let name = last_word(target);
    is_identifier(name).then(|| name.to_owned())
}

/// The identifier after `&` in `posix_memalign`, or inside Fortran's `allocate`.
fn by_argument(code: &str) -> Option<String> {
    let rest = if let Some((_, rest)) = code.split_once("posix_memalign") {
        rest.split_once('&')?.1
    } else {
        let at = code.to_ascii_lowercase().find("allocate")?;
        code[at..].split_once('(')?.1
    };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !is_word(c) && c != '%').unwrap_or(rest.len());
    let name = last_word(&rest[..end]);
    is_identifier(name).then(|| name.to_owned())
}

fn plain_assignment(code: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    (0..bytes.len()).rev().find(|&i| {
        let before = i.checked_sub(1).map_or(b' ', |j| bytes[j]);
        let after = bytes.get(i + 1).copied().unwrap_or(b' ');
        bytes[i] == b'=' && after != b'=' && !b"=!<>+-*/%&|^".contains(&before)
    })
}

fn last_word(text: &str) -> &str {
    &text[text.rfind(|c: char| !is_word(c)).map_or(0, |i| i + 1)..]
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assigned_name_is_found_in_c_cpp_and_fortran() {
        for (line, name) in [
            ("    double *rhs = malloc(n * sizeof *rhs);", "rhs"),
            ("  m->grid = (double *)calloc(n, 8);", "grid"),
            ("  this->cells_ = new Cell[n];", "cells_"),
            ("  rows[i] = malloc(n); // a = b", "rows"),
            ("  if ((p = malloc(n)) == NULL)", "p"),
            ("  int n = 5; double *a = malloc(n), *b = malloc(n);", "a"),
            ("  for (int i = 0; i < 4; i++) row[i] = alloc_row(i == 0);", "row"),
            ("  const double *grown = realloc(old, n);", "grown"),
            ("  if (n == 0 || !(q = malloc(n)))", "q"),
            ("  posix_memalign((void **)&a, 64, n);", "a"),
            ("  ALLOCATE(u(n, n))", "u"),
            ("  allocate(grid%cells(n))", "cells"),
            ("  std::vector<double> x = make(n);", "x"),
            ("  std::vector<double> y(n, 0.0);", "y"),
            ("  std::vector<std::vector<int>> z{n};", "z"),
        ] {
            assert_eq!(assigned_variable(line).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn a_line_without_assignment_names_nothing() {
        for line in [
            "  return malloc(n);",
            "  f(malloc(n) == 0);",
            "",
            "  x += 1;",
            "  1 = 2",
        ] {
            assert_eq!(assigned_variable(line), None, "{line}");
        }
    }
}
