//! Function names that are the same in different builds.

/// The plain name of a function, without return type, scope, template arguments and parameters: which of them debug
/// information contains depends on its level (`-g`, `-gline-tables-only`).
/// `std::__new_allocator<double>::allocate(unsigned long, void const*)` becomes `allocate`.
#[must_use]
pub fn base_name(function: &str) -> &str {
    if let Some(operator) = operator(function) {
        return operator;
    }
    let (mut depth, mut start, mut end) = (0usize, 0, None);
    for (i, c) in function.char_indices() {
        match c {
            '(' if depth == 0 && i > start && !scope_follows(&function[i..]) => {
                return &function[start..end.unwrap_or(i)];
            }
            '<' | '(' | '{' | '[' => {
                if depth == 0 && i > start {
                    end = end.or(Some(i));
                }
                depth += 1;
            }
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' | ' ' if depth == 0 => (start, end) = (i + 1, None),
            _ => {}
        }
    }
    match &function[start..end.unwrap_or(function.len())] {
        "" => function,
        name => name,
    }
}

/// Whether a scope follows the bracketed group at the start of `rest`, as in `f(int)::{lambda()#1}`.
fn scope_follows(rest: &str) -> bool {
    let mut depth = 0usize;
    let close = rest.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    close.is_some_and(|(i, _)| rest[i + 1..].starts_with("::"))
}

/// The name of the last operator in the name, if the function itself is one: `operator new[]`, `operator()`.
fn operator(function: &str) -> Option<&str> {
    let (at, word) = function.rmatch_indices("operator").next()?;
    let before = function[..at].chars().next_back();
    let rest = &function[at + word.len()..];
    let alone = before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let nested = function[..at].matches(['(', '<']).count() != function[..at].matches([')', '>']).count();
    if !alone || nested {
        return None;
    }
    let sign = if rest.starts_with("()") { 2 } else { 0 };
    let end = rest[sign..].find('(').map_or(rest.len(), |i| i + sign);
    let end = if sign > 0 { sign } else { end };
    Some(function[at..at + word.len() + end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_levels_of_debug_information_agree() {
        for (function, name) in [
            ("main", "main"),
            (
                "std::__new_allocator<double>::allocate(unsigned long, void const*)",
                "allocate",
            ),
            ("Field::Field(long)", "Field"),
            ("Field::~Field()", "~Field"),
            ("vector<double, std::allocator<double> >", "vector"),
            ("double* grid::make<double>(int)", "make"),
            ("(anonymous namespace)::build(int)", "build"),
            ("Grid::cells() const", "cells"),
            ("f[abi:cxx11](int)", "f"),
            (
                "solve(int)::{lambda(long)#1}::operator()(long) const",
                "operator()",
            ),
            ("operator()", "operator()"),
            ("operator new[](unsigned long)", "operator new[]"),
            ("std::ostream& operator<<(std::ostream&, int)", "operator<<"),
            ("my_operator(int)", "my_operator"),
            ("apply<&Grid::operator()>(int)", "apply"),
            ("libm.so.6+0x1234", "libm.so.6+0x1234"),
            ("", ""),
        ] {
            assert_eq!(base_name(function), name, "{function}");
        }
    }
}
