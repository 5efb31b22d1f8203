//! Names of heap objects that belong to members of classes.

use crate::{assigned_variable, base_name};

/// The class member to which a line of a member function assigns an allocation: `Grid::cells_` for `cells_ = new
/// Cell[n];`, `this->cells = …`, `m_cells.resize(n)` and `Grid(long n) : cells(n) {}` in `Grid::Grid(long)`. `None` if
/// a plain name may be a local variable.
#[must_use]
pub fn assigned_member(line: &str, function: &str) -> Option<String> {
    let class = class(function)?;
    let code = line.split("//").next()?;
    match initialised(code, class, base_name(function)) {
        Some(member) => Some(format!("{class}::{member}")),
        None => qualified(&assigned_variable(code)?, code, function),
    }
}

/// The name with its class, if the function is a member of one and the name cannot be a local variable's.
pub(crate) fn qualified(name: &str, code: &str, function: &str) -> Option<String> {
    let is_member = name.ends_with('_') || name.starts_with("m_") || code.contains(&format!("this->{name}"));
    class(function)
        .filter(|_| is_member)
        .map(|class| format!("{class}::{name}"))
}

/// The class of a member function: `Grid` for `geometry::Grid<double>::fill(long)`.
fn class(function: &str) -> Option<&str> {
    let name = base_name(function);
    let scope = function[..function.rfind(&format!("::{name}"))?].trim_end();
    let scope = match scope.rfind('<') {
        Some(open) if scope.ends_with('>') => &scope[..open],
        _ => scope,
    };
    let start = scope
        .trim_end_matches(|c: char| c.is_alphanumeric() || c == '_')
        .len();
    Some(&scope[start..]).filter(|class| !class.is_empty())
}

/// The first member in a constructor's initialiser list on this line that is constructed from a size.
fn initialised(code: &str, class: &str, function: &str) -> Option<String> {
    if class != function {
        return None;
    }
    // Either the line of the constructor itself, or a line of its initialiser list.
    let list = match code.find(')').map(|end| code[end + 1..].trim_start()) {
        Some(rest) if code.trim_start().contains(&format!("{class}(")) => rest.strip_prefix(':')?,
        _ => code.trim_start().strip_prefix([':', ','])?,
    };
    let list = list.trim_start();
    let end = list.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0 && list[end..].starts_with(['(', '{'])).then(|| list[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::assigned_member;

    #[test]
    fn members_have_their_class() {
        for (line, function, name) in [
            (
                "  cells_ = new double[n];",
                "Grid::Grid(long)",
                Some("Grid::cells_"),
            ),
            (
                "  this->cells = (double *)malloc(n);",
                "geo::Grid<int>::fill(long)",
                Some("Grid::cells"),
            ),
            (
                "  m_rows.resize(n);",
                "Field::grow(unsigned long)",
                Some("Field::m_rows"),
            ),
            (
                "  Grid(long n) : cells(n) {}",
                "Grid::Grid(long)",
                Some("Grid::cells"),
            ),
            (
                "      : cells(n), flags(n)",
                "Grid::Grid(long)",
                Some("Grid::cells"),
            ),
            ("  double *local = new double[n];", "Grid::fill(long)", None),
            ("  cells_ = new double[n];", "main", None),
        ] {
            assert_eq!(assigned_member(line, function).as_deref(), name, "{line}");
        }
    }
}
