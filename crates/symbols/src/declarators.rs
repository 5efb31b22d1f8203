//! Names of objects when several are allocated on one line.

use crate::members::qualified;
use crate::naming::{
    allocation, allocations, assigned_variable, by_argument, by_declaration, declared_at, is_identifier,
    is_word, last_word, plain_assignments,
};
use crate::statements::{Statement, statement_at, statements};
use crate::{assigned_member, declared_variable};
use std::ops::Range;

/// What a source line tells about the name of an object that is allocated on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The name of its variable or member.
    Variable(String),
    /// The line assigns several allocations, and the column does not tell which one this is.
    Several,
    /// The line assigns nothing: the statement may begin on a line above.
    Nothing,
}

/// The variable to which a line assigns the allocation at `column`, counted in bytes from 1 as debug information has
/// it; 0 if unknown. For `double *a = malloc(n), *b = malloc(n);` only the column distinguishes `a` from `b`: neither
/// the order of the allocations nor their sizes do. `function` is the function that contains the line; if `initialiser`
/// is set, the line initialises objects at file scope, and a definition gives its variable's name.
#[must_use]
pub fn named_at(line: &str, column: usize, function: &str, initialiser: bool) -> Named {
    let statements = statements(line);
    let place = Place {
        line,
        function,
        initialiser,
    };
    let Some(at) = column.checked_sub(1) else {
        return place.anywhere(&statements);
    };
    match statement_at(&statements, at.min(line.len())) {
        Some(statement) => place.at(statement, at),
        None => Named::Nothing,
    }
}

/// Where an object is allocated.
struct Place<'a> {
    line: &'a str,
    function: &'a str,
    initialiser: bool,
}

impl Place<'_> {
    /// The name that a line gives if it allocates once.
    fn anywhere(&self, statements: &[Statement]) -> Named {
        let calls = |s: &&Statement| {
            let right = s.text.split_once('=').map_or("", |(_, right)| right);
            pieces(&s.text).iter().any(|p| p.makes > 0)
                || by_declaration(&s.text).is_some()
                || (plain_assignments(&s.text) > 0 && right.contains('('))
        };
        let mut all = statements.iter().filter(calls);
        let named = |s: &Statement| {
            let pieces = pieces(&s.text);
            let makes: Vec<&Piece> = pieces.iter().filter(|p| p.makes > 0).collect();
            let several = match makes.iter().map(|p| p.makes).sum::<usize>() {
                0 => plain_assignments(&s.text) > 1,
                all => all > 1,
            };
            if several {
                return Named::Several;
            }
            let name = assigned_member(&s.text, self.function);
            name.or_else(|| self.name_of(&s.text, makes.first().copied()))
                .map_or(Named::Nothing, Named::Variable)
        };
        match (all.next(), all.next()) {
            (Some(one), None) => named(one),
            (Some(_), Some(_)) => Named::Several,
            (None, _) => statements
                .iter()
                .map(named)
                .find(|n| *n != Named::Nothing)
                .unwrap_or(Named::Nothing),
        }
    }

    /// The name that a statement gives to what it allocates at a byte of the line.
    fn at(&self, statement: &Statement, at: usize) -> Named {
        let (code, start) = (&*statement.text, statement.range.start);
        let within = at.saturating_sub(start);
        let all = pieces(code);
        let Some(piece) = all.iter().find(|p| within <= p.range.end).or(all.last()) else {
            return Named::Nothing;
        };
        if let Some(name) = declared_at(code, within) {
            return Named::Variable(name);
        }
        let text = &code[piece.range.clone()];
        if piece.makes > 1 || (piece.makes == 0 && plain_assignments(text) > 1) {
            let called = code.get(within..).unwrap_or_default();
            let name = assigned_before(code, within).or_else(|| pointed_at(called));
            let name = name.map(|name| qualified(&name, text, self.function).unwrap_or(name));
            return name.map_or(Named::Several, Named::Variable);
        }
        // A member in a constructor's initialiser list is recognised by the comma before it.
        let comma = piece.range.start - usize::from(code[..piece.range.start].ends_with(','));
        let listed = assigned_member(&code[comma..piece.range.end], self.function);
        match listed.or_else(|| self.name_of(text, Some(piece))) {
            Some(name) => Named::Variable(name),
            None if self.line[..start + piece.range.start].trim().is_empty() => Named::Nothing,
            None => Named::Several,
        }
    }

    fn name_of(&self, text: &str, piece: Option<&Piece>) -> Option<String> {
        piece
            .and_then(|p| p.name.clone())
            .or_else(|| assigned_variable(text))
            .or_else(|| declared_variable(text).filter(|_| self.initialiser))
    }
}

/// A declarator or an expression between commas.
struct Piece {
    range: Range<usize>,
    name: Option<String>,
    /// Number of allocations in it, as far as the text tells.
    makes: usize,
}

/// The parts of a statement between commas.
fn pieces(code: &str) -> Vec<Piece> {
    let parts = split(code, ',');
    let first = &code[parts[0].clone()];
    let ends = first.rfind('>').map_or("", |end| &first[..=end]);
    let container = if ends.contains('<') && !ends.ends_with("->") {
        ends
    } else {
        ""
    };
    let constructed = |i: usize, piece: &str| {
        let word = piece
            .strip_prefix(container)
            .filter(|_| i == 0)
            .unwrap_or(piece)
            .trim_start();
        let end = word.find(|c: char| !is_word(c))?;
        let constructed = !container.is_empty() && word[end..].starts_with(['(', '{']);
        (constructed && end > 0).then(|| word[..end].to_owned())
    };
    let piece = |(i, range): (usize, Range<usize>)| {
        let text = &code[range.clone()];
        let name = match allocates(text) {
            true => assigned_variable(text),
            false => constructed(i, text),
        };
        let makes = allocations(text).max(usize::from(name.is_some()));
        Piece { range, name, makes }
    };
    parts.into_iter().enumerate().map(piece).collect()
}

/// The variable of the assignment whose right-hand side begins, after casts and brackets, with the call at byte `at` of
/// the code: `b` for the second call in `if (!(a = malloc(n))
/// !(b = (double *)malloc(n)))`.
fn assigned_before(code: &str, at: usize) -> Option<String> {
    let mut head = code.get(..at.min(code.len()))?.trim_end_matches(is_word);
    loop {
        let before = head.len();
        head = head.trim_end().trim_end_matches('(').trim_end_matches("::");
        let types = |c: char| is_word(c) || " *&:<>,".contains(c);
        head = without_group(head, '(', ')', types).unwrap_or(head);
        if let Some(cast) = without_group(head, '<', '>', types) {
            head = cast.trim_end_matches(is_word);
        }
        if head.len() == before {
            break;
        }
    }
    let target = head.strip_suffix('=')?;
    if target.ends_with(['=', '!', '<', '>', '+', '-', '*', '/', '%', '&', '|', '^']) {
        return None;
    }
    let mut target = target.trim_end();
    while let Some(element) = without_group(target, '[', ']', |_| true) {
        target = element.trim_end();
    }
    let name = last_word(target);
    is_identifier(name).then(|| name.to_owned())
}

/// The variable whose address is the first argument of a `posix_memalign` call.
fn pointed_at(call: &str) -> Option<String> {
    let (first, _) = call.split_once(',')?;
    by_argument(first).filter(|_| first.starts_with("posix_memalign"))
}

/// The text without the bracketed group at its end, if the group has only characters that `inside` accepts.
fn without_group(text: &str, open: char, close: char, inside: impl Fn(char) -> bool) -> Option<&str> {
    let inner = text.strip_suffix(close)?;
    let mut depth = 1;
    let start = inner.char_indices().rev().find_map(|(i, c)| {
        depth += i32::from(c == close) - i32::from(c == open);
        (depth == 0).then_some(i)
    })?;
    inner[start + 1..].chars().all(inside).then(|| &text[..start])
}

fn allocates(piece: &str) -> bool {
    let at = allocation(piece).unwrap_or(0);
    piece[..at].contains('=')
}

/// Splits code at a character outside all brackets; `<` counts as a bracket only directly after a word.
fn split(code: &str, at: char) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut depth, mut before) = (Vec::new(), 0, 0, ' ');
    let mut angles = 0usize;
    for (i, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '<' if before.is_alphanumeric() => angles += 1,
            '>' if before != '-' => angles = angles.saturating_sub(1),
            _ if c == at && depth <= 0 && angles == 0 => {
                parts.push(start..i);
                start = i + c.len_utf8();
            }
            _ => {}
        }
        before = c;
    }
    parts.push(start..code.len());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str, call: &str, nth: usize) -> Named {
        let (start, _) = line.match_indices(call).nth(nth).unwrap();
        named_at(line, start + 1, "main", false)
    }

    #[test]
    fn each_allocation_of_a_line_has_its_name_by_its_column() {
        for (line, call, names) in [
            (
                "  double *a=malloc(n*8),*b=malloc(n*8),*k=malloc(n);",
                "malloc",
                "a b k",
            ),
            (
                "  double *a = (double *)malloc(8), *b = (double *)malloc(n);",
                "malloc",
                "a b",
            ),
            ("  double *a = new double[n], *b = new double[n];", "new", "a b"),
            ("  a = new double[n]; b = new double[n];", "new", "a b"),
            (
                "  posix_memalign((void **)&a, 64, n); posix_memalign((void **)&b, 64, n);",
                "posix",
                "a b",
            ),
            (
                "  if ((c = malloc(n)) == NULL || (d = malloc(n)) == NULL) return 1;",
                "malloc",
                "c d",
            ),
            (
                "  if (posix_memalign((void **)&p, 64, n) || posix_memalign(&q, 64, n)) return 1;",
                "posix",
                "p q",
            ),
            (
                "  if (!(c = malloc(n)) || !(d = static_cast<T *>(malloc(n)))) return 1;",
                "malloc",
                "c d",
            ),
            (
                "  if (n) { x[0] = malloc(n); row[i] = malloc(n); }",
                "malloc",
                "x row",
            ),
            (
                "  auto a = std::make_unique<double[]>(n), b = std::make_unique<double[]>(n);",
                "make",
                "a b",
            ),
            ("  a.resize(n); b.resize(n);", "resize", "a b"),
            ("  G_ALLOC(&a, n); G_ALLOC(&b, n);", "G_ALLOC", "a b"),
            ("  double *a = grab(n), *b = grab(n);", "grab", "a b"),
        ] {
            for (i, name) in names.split(' ').enumerate() {
                let found = at(line, call, i);
                assert_eq!(found, Named::Variable(name.to_owned()), "{line}: {i}");
            }
        }
        let line = "  std::vector<double> a(n, 1.0), b(n); double s = 0;";
        assert_eq!(at(line, "a(", 0), Named::Variable("a".into()));
        assert_eq!(at(line, "b(", 0), Named::Variable("b".into()));
    }

    #[test]
    fn without_a_column_only_a_line_that_allocates_once_names_its_object() {
        for (line, name) in [
            ("  double *a=malloc(n),*b=malloc(n);", Named::Several),
            (
                "  std::vector<double> a(n, 1.0), b(n); double s = 0;",
                Named::Several,
            ),
            (
                "  if ((c = malloc(n)) == NULL || (d = malloc(n)) == NULL)",
                Named::Several,
            ),
            ("  a.resize(n); b.resize(n);", Named::Several),
            ("  double *a = grab(n), *b = grab(n);", Named::Several),
            ("  allocate(a(n), b(n))", Named::Several),
            ("  std::map<int, double> m{x, y};", Named::Variable("m".into())),
            (
                "  int n = 5, *p = calloc(n, 4); // q = malloc(1)",
                Named::Variable("p".into()),
            ),
            (
                "  for (int i = 0; i < 4; i++) row[i] = malloc(n);",
                Named::Variable("row".into()),
            ),
            ("  allocate(a(n, m), stat=ierr)", Named::Variable("a".into())),
            ("  return f(1, 2);", Named::Nothing),
            ("  grid->init(n), grid->fill(n);", Named::Nothing),
            ("  if (a > b) print(a);", Named::Nothing),
            ("", Named::Nothing),
        ] {
            assert_eq!(named_at(line, 0, "main", false), name, "{line}");
        }
    }

    #[test]
    fn where_a_column_does_not_tell_there_is_no_name() {
        let line = "  allocate(a(n), b(n))";
        assert_eq!(named_at(line, 3, "main", false), Named::Several);
        let line = "  if (posix_memalign(to, 64, n) || posix_memalign(&q, 64, n)) return 1;";
        assert_eq!(named_at(line, 7, "main", false), Named::Several);
        // An allocation of the library's own, on a line that has another of the program's.
        assert_eq!(at("  a = malloc(n); fill(list);", "fill", 0), Named::Several);
        // A statement that began above: its end is looked at there.
        assert_eq!(
            at("      malloc(n), *b = malloc(n);", "malloc", 0),
            Named::Nothing
        );
        assert_eq!(
            at("  double *a = malloc(n), *b =", "=", 1),
            Named::Variable("b".into())
        );
        for column in 0..60 {
            let _ = named_at(
                "  ° = x(°, malloc(n)), (y = malloc(°)) || °; z = ((",
                column,
                "°::°",
                true,
            );
        }
    }

    #[test]
    fn a_constructors_list_names_the_member_at_the_column() {
        let line = "  Grid(long n) : n(n), cells(new Cell[n]), more(n) { }";
        let at = |text| named_at(line, line.find(text).unwrap() + 1, "Grid::Grid(long)", false);
        assert_eq!(at("new"), Named::Variable("Grid::cells".into()));
        assert_eq!(at("more"), Named::Variable("Grid::more".into()));
    }

    /// Each statement of a line names what it allocates, whatever the blocks around it.
    #[test]
    fn no_statement_has_the_name_of_another() {
        let grow = "M::grow(int)";
        for (line, function, names) in [
            (
                "namespace deep { std::vector<int> counts(300000); float *w = new float[150000]; }",
                "__cxx_global_var_init",
                &[("counts(", "counts"), ("new", "w")][..],
            ),
            (
                " void grow(int n){ nodes_.resize(n); faces_=std::make_unique<int[]>(n); }",
                grow,
                &[("resize", "M::nodes_"), ("std::make", "M::faces_")],
            ),
            (
                " void grow(int n){ nodes_.resize(n); faces_=std::make_unique<int[]>(n); e_=new double[n]; }",
                grow,
                &[
                    ("resize", "M::nodes_"),
                    ("std::make", "M::faces_"),
                    ("new", "M::e_"),
                ],
            ),
            (
                " void grow(int n){ e_=new double[n]; nodes_.reserve(2*n); }",
                grow,
                &[("new", "M::e_"), ("reserve", "M::nodes_")],
            ),
            (
                " auto a=std::make_shared<std::vector<double>>(80000,1.0); std::string s(n, 'x');",
                "main",
                &[("std::make", "a"), ("s(n", "s")],
            ),
            (
                " std::vector<std::vector<double>> rows(4, std::vector<double>(20000));",
                "main",
                &[("rows", "rows"), ("std::vector<double>(2", "rows")],
            ),
            (
                " std::thread t([&]{ std::vector<int> worker(90000); fill(worker); }); t.join();",
                "main::{lambda()#1}::operator()() const",
                &[("worker(", "worker")],
            ),
            (
                "struct Cfg{ float*w; Cfg():w(new float[150000]){} } cfg;",
                "Cfg::Cfg()",
                &[("new", "Cfg::w")],
            ),
            (
                " Mesh(int n):nodes_(n),edges_(new double[2*n]){rows_.resize(4); own = new int[n];}",
                "Mesh::Mesh(int)",
                &[
                    ("nodes_", "Mesh::nodes_"),
                    ("new double", "Mesh::edges_"),
                    ("resize", "Mesh::rows_"),
                    ("new int", "own"),
                ],
            ),
            (
                " if ((a_ = malloc(n)) && (b_ = malloc(n))) { c = malloc(n); puts(\"d = malloc(n);\"); }",
                grow,
                &[
                    ("malloc", "M::a_"),
                    ("malloc(n)))", "M::b_"),
                    ("malloc(n); p", "c"),
                ],
            ),
        ] {
            for (call, name) in names {
                let column = line.find(call).unwrap() + 1;
                let found = named_at(line, column, function, false);
                assert_eq!(found, Named::Variable((*name).to_owned()), "{line}: {call}");
            }
        }
    }

    #[test]
    fn types_and_keywords_are_no_names() {
        for line in [
            "  return std::vector<int>(n);",
            "  fill(std::vector<int>(n), std::vector<float>(n));",
            "  auto = new int[n];",
            "  return new (std::nothrow) double[n]{};",
            "  throw std::string(n, c);",
        ] {
            for column in 0..=line.len() {
                let found = named_at(line, column, "M::grow(int)", false);
                assert!(
                    !matches!(found, Named::Variable(_)),
                    "{line}: {column}: {found:?}"
                );
            }
        }
        let line = " void grow(int n){ nodes_.resize(n); faces_=std::make_unique<int[]>(n); }";
        assert_eq!(named_at(line, 0, "M::grow(int)", false), Named::Several);
        let line = "namespace deep { std::vector<int> counts(300000); float *w = new float[150000]; }";
        assert_eq!(named_at(line, 0, "__cxx_global_var_init", true), Named::Several);
    }

    #[test]
    fn members_are_told_apart_too() {
        let line = "    a_ = new double[n]; b_ = new double[n];";
        let column = line.rfind("new").unwrap() + 1;
        assert_eq!(
            named_at(line, column, "Grid::fill(long)", false),
            Named::Variable("Grid::b_".into())
        );
    }
}
