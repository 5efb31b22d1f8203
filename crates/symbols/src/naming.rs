//! Names of heap objects, taken from the source line that allocates them.

/// The variable or field to which a line assigns its allocation: `rhs` for `double *rhs = malloc(n);`, `grid` for
/// `m->grid = new double[n];`, `a` for `posix_memalign((void **)&a, 64, n);` and `allocate(a(n))`.
#[must_use]
pub fn assigned_variable(line: &str) -> Option<String> {
    let code = line.split("//").next()?;
    by_assignment(code)
        .or_else(|| by_argument(code))
        .or_else(|| by_container(code))
        .or_else(|| by_declaration(code))
        .or_else(|| by_macro(code))
}

/// Byte offset of the first allocating call on a line: `malloc(`, `G_MALLOC(`, `new T`, but not `last_malloc[i]`.
pub(crate) fn allocation(code: &str) -> Option<usize> {
    let lower = code.to_ascii_lowercase();
    let call = |word: &'static str| {
        let called = move |at: &usize, lower: &str| {
            let rest = lower[at + word.len()..].trim_start_matches(is_word).trim_start();
            rest.starts_with(['(', '<'])
        };
        lower
            .match_indices(word)
            .map(|m| m.0)
            .find(|at| called(at, &lower))
    };
    let new = lower
        .match_indices("new ")
        .map(|m| m.0)
        .find(|at| !lower[..*at].ends_with(is_word));
    [call("alloc"), call("mmap"), call("memalign"), new]
        .into_iter()
        .flatten()
        .min()
}

/// Number of allocations in a text, as far as it tells; Fortran's `allocate` takes several arguments.
pub(crate) fn allocations(code: &str) -> usize {
    let (mut count, mut rest) = (0, code);
    while let Some(at) = allocation(rest) {
        let word = rest[at..].find(|c| !is_word(c)).unwrap_or(rest.len() - at);
        let after = &rest[at + word..];
        let is_fortran =
            rest[..at].trim_end().is_empty() && rest[at..at + word].eq_ignore_ascii_case("allocate");
        count += if is_fortran {
            arguments(after.trim_start())
        } else {
            1
        };
        rest = after;
    }
    count
        + CONTAINER_CALLS
            .iter()
            .map(|c| code.matches(c).count())
            .sum::<usize>()
}

/// Number of positional arguments of a call, from its opening bracket; `stat=ierr` is a keyword argument.
fn arguments(call: &str) -> usize {
    let (mut depth, mut count, mut keyword) = (0, 1, false);
    for c in call.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '=' if depth == 1 => keyword = true,
            ',' if depth == 1 => {
                count += usize::from(!keyword);
                keyword = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    count - usize::from(keyword && count > 1)
}

const CONTAINER_CALLS: [&str; 6] = [
    ".resize(",
    ".assign(",
    ".reserve(",
    "->resize(",
    "->assign(",
    "->reserve(",
];

/// The identifier whose container method allocates: `cells` in `cells.resize(n)`.
fn by_container(code: &str) -> Option<String> {
    let at = CONTAINER_CALLS.iter().filter_map(|c| code.find(c)).min()?;
    let name = last_word(code[..at].split('[').next()?);
    is_identifier(name).then(|| name.to_owned())
}

/// The first argument of a statement that is a macro call: `grid` in `SHARED_ALLOC(grid, n)`.
fn by_macro(code: &str) -> Option<String> {
    let code = code.trim_start();
    let (name, rest) = code.split_once('(')?;
    let (first, _) = rest.split_once(',')?;
    let first = first.trim().trim_start_matches('&').split('[').next()?;
    let allocates = name.contains("ALLOC") && name.chars().all(is_word);
    let name = last_word(first);
    (allocates && is_identifier(name) && first.chars().all(|c| is_word(c) || "->.".contains(c)))
        .then(|| name.to_owned())
}

/// The variable that a line declares: `grid` for `static Grid<double> grid(100);`.
#[must_use]
pub fn declared_variable(line: &str) -> Option<String> {
    let code = line.split("//").next()?.trim();
    let mut depth = 0usize;
    let end = code.char_indices().find(|(_, c)| {
        depth = match c {
            '<' => depth + 1,
            '>' => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 0 && "({=;[".contains(*c)
    });
    let declared = code[..end?.0].trim_end();
    let name = last_word(declared);
    let typed = declared[..declared.len() - name.len()].trim_end();
    let is_type = typed.ends_with(|c: char| is_word(c) || ">*&".contains(c));
    (is_identifier(name) && is_type && !STATEMENTS.contains(&last_word(typed))).then(|| name.to_owned())
}

/// The identifier in `std::vector<double> x(n);`: it follows the type's own closing bracket.
pub(crate) fn by_declaration(code: &str) -> Option<String> {
    let (mut angles, mut before) = (0usize, ' ');
    let end = code.char_indices().find_map(|(i, c)| {
        let closes = c == '>' && before != '-' && angles > 0;
        match c {
            '<' if is_word(before) => angles += 1,
            '>' if closes => angles -= 1,
            _ => {}
        }
        before = c;
        let rest = code[i + c.len_utf8()..].trim_start();
        (closes && angles == 0 && rest.starts_with(is_word)).then_some(i + 1)
    })?;
    let outside = code[..end].matches('(').count() == code[..end].matches(')').count();
    let rest = code[end..].trim_start();
    let end = rest.find(|c: char| !is_word(c))?;
    let (name, rest) = rest.split_at(end);
    // A declaration that is followed by a body is a function.
    let is_function =
        rest.trim_end().ends_with('{') || rest.trim_end().ends_with('}') && rest.starts_with('(');
    (outside && is_identifier(name) && rest.starts_with(['(', '{']) && !is_function).then(|| name.to_owned())
}

/// The variable that is declared at a byte of a statement: `b` in `Field b(n)`, where `b` begins.
pub(crate) fn declared_at(code: &str, at: usize) -> Option<String> {
    let (typed, rest) = (code.get(..at)?, code.get(at..)?);
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let name = &rest[..end];
    let follows = rest[end..].trim_start();
    let begins = !typed.ends_with(is_word);
    let typed = typed.trim();
    let is_type = typed.chars().all(|c| is_word(c) || " :<>,*&".contains(c))
        && typed.ends_with(|c| is_word(c) || ">*&".contains(c))
        && !typed.ends_with("->")
        && !STATEMENTS.contains(&last_word(typed))
        && !STATEMENTS.contains(&typed.split(|c| !is_word(c)).next().unwrap_or_default());
    let is_declared = follows.is_empty() || follows.starts_with(['(', '{', '=', ',']);
    (begins && is_type && is_declared && is_identifier(name)).then(|| name.to_owned())
}

/// The identifier on the left of the last plain `=` before the allocation, without its subscript.
fn by_assignment(code: &str) -> Option<String> {
    let call = allocation(code).unwrap_or(code.len());
    let equals = plain_assignment(&code[..call])?;
    let target = code[..equals].trim_end();
    let target = target.split('[').next()?.trim_end();
    let name = last_word(target);
    is_identifier(name).then(|| name.to_owned())
}

/// The identifier after `&` in `posix_memalign`, or inside Fortran's `allocate`.
pub(crate) fn by_argument(code: &str) -> Option<String> {
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
    (0..code.len()).rev().find(|&i| assigns_at(code, i))
}

/// Number of plain `=` in the code.
pub(crate) fn plain_assignments(code: &str) -> usize {
    (0..code.len()).filter(|&i| assigns_at(code, i)).count()
}

fn assigns_at(code: &str, i: usize) -> bool {
    let bytes = code.as_bytes();
    let before = i.checked_sub(1).map_or(b' ', |j| bytes[j]);
    let after = bytes.get(i + 1).copied().unwrap_or(b' ');
    bytes[i] == b'=' && after != b'=' && !b"=!<>+-*/%&|^".contains(&before)
}

pub(crate) fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_word).len()..]
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a word may be a variable's name.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !TYPES.contains(&name)
        && !STATEMENTS.contains(&name)
}

/// Keywords of C and C++ that may be part of a type.
const TYPES: [&str; 23] = [
    "auto",
    "bool",
    "char",
    "class",
    "const",
    "constexpr",
    "decltype",
    "double",
    "enum",
    "extern",
    "float",
    "inline",
    "int",
    "long",
    "short",
    "signed",
    "size_t",
    "static",
    "struct",
    "typename",
    "unsigned",
    "void",
    "volatile",
];

/// Keywords that are neither part of a type nor a variable's name.
const STATEMENTS: [&str; 23] = [
    "case",
    "catch",
    "default",
    "delete",
    "do",
    "else",
    "for",
    "goto",
    "if",
    "namespace",
    "new",
    "nullptr",
    "operator",
    "return",
    "sizeof",
    "switch",
    "template",
    "this",
    "throw",
    "try",
    "typedef",
    "using",
    "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_hold_any_characters() {
        assert_eq!(assigned_variable("/* 20 ° */ double *a° = malloc(n);"), None);
        assert_eq!(assigned_variable("°b = malloc(n);").as_deref(), Some("b"));
    }

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
            ("  last_malloc[i] = (double *) malloc(n);", "last_malloc"),
            ("  keys = (long *) G_MALLOC(n * sizeof(long));", "keys"),
            ("  if (NULL == (q = SHMALLOC(n)))", "q"),
            ("  G_ALLOC(&grid->cells, n);", "cells"),
            ("  grid.cells.resize(n);", "cells"),
            ("  rows_[i].assign(n, 0.0);", "rows_"),
        ] {
            assert_eq!(assigned_variable(line).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn a_definition_names_its_variable() {
        for (line, name) in [
            ("static Grid<double> grid(100);", Some("grid")),
            ("Field field{3, 4};", Some("field")),
            ("const std::map<int, int> table = make();", Some("table")),
            ("static Grid *grids[3];", Some("grids")),
            ("fill(100);", None),
            ("return grid(1);", None),
        ] {
            assert_eq!(declared_variable(line).as_deref(), name, "{line}");
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
