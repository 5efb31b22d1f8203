//! C code to copy: with libnodewise if it has the distribution, else plain OpenMP if that is sufficient.
//!
//! A profile contains an array's name, allocation and loops, but not its type, its extents or the bounds of its loops.
//! In snippets these are called `item` (bytes), `nx`, `ny`, `nz`, `i_first`, `i_last` …, for the reader to replace.

use crate::blame::Blame;
use crate::distribution::Distribution;
use crate::loops::is_schedulable;
use crate::phrases::in_source_order;
use crate::users::Pass;
use nodewise_profile::{Frame, Object, ObjectKind, Profile, Site};
use std::fmt::Write;

/// Names that snippets use themselves.
const RESERVED_NAMES: [&str; 13] = [
    "extents", "distr", "rows", "columns", "planes", "item", "nx", "ny", "nz", "i", "j", "k", "near",
];
/// By dimension: the names of its extent, its index, and its cuts.
const EXTENT: [&str; 3] = ["nx", "ny", "nz"];
const INDEX: [&str; 3] = ["i", "j", "k"];
const CUTS: [&str; 3] = ["rows", "columns", "planes"];

/// The names and places that a snippet refers to.
pub(crate) struct SnippetNames {
    /// A C name for the object.
    variable: String,
    /// Whether `variable` is a variable of the program; otherwise code that uses it could not be copied.
    is_variable: bool,
    kind: ObjectKind,
    /// Where it was allocated, if that is known.
    allocated: Option<String>,
    /// Whether libnodewise allocated the object, and therefore knows it.
    is_known: bool,
    /// Where it was first touched.
    pub touched: String,
    /// Where it is used.
    pub used: String,
}

impl SnippetNames {
    pub fn new(blame: &Blame, profile: &Profile) -> Self {
        let object = &profile.objects[blame.object.index()];
        let known =
            |names: Option<&String>, otherwise: &str| names.map_or(otherwise.to_owned(), Clone::clone);
        let name = &variable_name(object);
        let site = profile.site(object.site);
        Self {
            variable: if is_expression(name) && !RESERVED_NAMES.contains(&&**name) {
                name.clone()
            } else {
                "array".to_owned()
            },
            is_variable: is_variable(object, site),
            kind: object.kind,
            allocated: site.and_then(allocated_at),
            is_known: site.is_some_and(is_ours),
            touched: known(blame.first_touched.as_ref().map(|t| &t.at), "its initialisation"),
            used: known(blame.used_by.as_ref().map(|u| &u.at), "its main loop"),
        }
    }

    /// The code that `write` makes; `None` if there is no variable to write about.
    pub fn code(&self, write: impl FnOnce(&Self) -> String) -> Option<String> {
        self.is_variable.then(|| write(self))
    }

    /// Code that registers the array with libnodewise.
    fn adopt(&self, dimensions: usize) -> String {
        if self.is_known {
            return format!("/* once {} is allocated */\n", self.variable);
        }
        let Self { variable, .. } = self;
        let extents = EXTENT[..dimensions].join(", ");
        let when = match (&self.allocated, self.kind) {
            (Some(at), ObjectKind::Mapping) => {
                format!("after its allocation at {at}; needless where nw_alloc made it")
            }
            (Some(at), _) => format!("after its allocation at {at}"),
            (None, ObjectKind::Static) => "at the start of main".to_owned(),
            (None, _) => "after its allocation".to_owned(),
        };
        format!(
            "size_t extents[] = {{{extents}}}; /* those of {variable}{0} */\n\
             nw_adopt({variable}, item, {dimensions}, extents); /* {when}; item: bytes of {variable}{0} */\n",
            subscripts(dimensions)
        )
    }

    /// Code that reverses [`SnippetNames::adopt`].
    fn forget(&self) -> String {
        let Self { variable, .. } = self;
        match (self.is_known, self.kind) {
            (true, _) => String::new(),
            (_, ObjectKind::Static) => format!("nw_forget({variable}); /* at the end of main */\n"),
            _ => format!("nw_forget({variable}); /* before {variable} is freed */\n"),
        }
    }
}

/// Subscripts of an element: `[i][j]` for two dimensions.
fn subscripts(dimensions: usize) -> String {
    INDEX[..dimensions].iter().map(|i| format!("[{i}]")).collect()
}

/// Compilers call a static variable of a function `main.u0` or `u0.3`.
fn variable_name(object: &Object) -> String {
    let name = object.name.as_str();
    let own = match (object.kind, name.rsplit_once('.')) {
        (ObjectKind::Static, Some((variable, number))) if number.bytes().all(|b| b.is_ascii_digit()) => {
            variable
        }
        (ObjectKind::Static, Some((_, variable))) => variable,
        _ => name,
    };
    own.to_owned()
}

/// Whether an object is named after a variable of the program, not after the function that allocated it, a file, or its
/// kind of memory.
fn is_variable(object: &Object, site: Option<&Site>) -> bool {
    let kind = matches!(
        object.kind,
        ObjectKind::Heap | ObjectKind::Static | ObjectKind::Mapping
    );
    let name = object.name.as_str();
    let function = |f: &Frame| f.function == name || f.function.starts_with(&format!("{name}("));
    kind && is_expression(name)
        && name != "main"
        && name != object.kind.name()
        && !name.starts_with("__cxx_global")
        && !site.is_some_and(|s| s.frames.iter().any(function))
}

/// Whether a name is a C name, member or element.
fn is_expression(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.->[]".contains(c))
}

/// `file:line` of the innermost frame in the program's own code.
fn allocated_at(site: &Site) -> Option<String> {
    let frame = site.frames.iter().find(|f| f.line > 0)?;
    Some(frame.place())
}

/// Whether libnodewise allocated the array.
fn is_ours(site: &Site) -> bool {
    site.frames.iter().any(|f| f.function.starts_with("nw_alloc"))
}

const LIBRARY: &str = "#include <nodewise.h> /* link with -lnodewise */\n";
const SCHEDULES: &str = "#include <nodewise_schedule.h> /* link with -lnodewise */\n";
const BIND: &str = "nw_bind_openmp(); /* at the start of main: cuts and policies count on it */\n";

/// Code for a block-exclusive distribution (a Latin square), and for loops that match it.
pub(crate) fn block_exclusive(names: &SnippetNames, blame: &Blame, dimensions: u32) -> String {
    let distributed = distributed_dimensions(dimensions);
    let cut_names: Vec<&str> = distributed.iter().map(|d| CUTS[*d]).collect();
    let cuts: Vec<String> = distributed
        .iter()
        .map(|d| format!("{} = nw_distr_cuts(distr, {d});\n", CUTS[*d]))
        .collect();
    let mut text = format!(
        "{SCHEDULES}static nw_cuts {}; /* at file scope: all functions below use them */\n\n{BIND}\n{}{}nw_distr_free(distr);\n",
        cut_names.join(", "),
        square(names, dimensions),
        cuts.concat(),
    );
    for &d in &distributed {
        let passes = passes_over(blame, d);
        if !passes.is_empty() {
            text += &exclusive_loop(names, &passes, d, &distributed);
        }
    }
    match names.forget() {
        last if last.is_empty() => text,
        last => text + "\n" + &last,
    }
}

/// Code for another array that the same loops use.
pub(crate) fn same_square(names: &SnippetNames, dimensions: u32, first: &str) -> String {
    format!(
        "{SCHEDULES}{}nw_distr_free(distr); /* with the extents of `{first}` its cuts, and so its loops, are the same */\n{}",
        square(names, dimensions),
        names.forget()
    )
}

fn distributed_dimensions(dimensions: u32) -> Vec<usize> {
    (0..3).filter(|d| dimensions >> d & 1 == 1).collect()
}

fn square(names: &SnippetNames, dimensions: u32) -> String {
    let deepest = distributed_dimensions(dimensions).last().map_or(1, |d| d + 1);
    format!(
        "{}nw_distr *distr = nw_describe({}, nw_block_exclusive({dimensions}));\nnw_distribute(distr);\n",
        names.adopt(deepest),
        names.variable
    )
}

fn passes_over(blame: &Blame, dimension: usize) -> Vec<&Pass> {
    let over = |p: &&Pass| is_schedulable(&p.division) && p.division.pattern.dimension() == Some(dimension);
    blame.passes.iter().filter(over).collect()
}

/// `adi.c:49 (sweep_x), adi.c:77 (sweep_y)`.
fn list(passes: &[&Pass]) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut passes = passes.to_vec();
    passes.sort_by_key(|p| in_source_order(&p.at));
    for pass in passes {
        let one = match pass.function.as_str() {
            "" => pass.at.clone(),
            function => format!("{} ({function})", pass.at),
        };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.join(", ")
}

/// The loops over one dimension, inside blocks of the others.
fn exclusive_loop(names: &SnippetNames, passes: &[&Pass], dimension: usize, distributed: &[usize]) -> String {
    let SnippetNames { variable, .. } = names;
    let name = passes[0].division.pattern.name();
    let others: Vec<usize> = distributed.iter().copied().filter(|d| *d != dimension).collect();
    let down = match passes.iter().any(|p| p.division.inverse) {
        true => "; counting down, parts go from the last to the first",
        false => "",
    };
    let mut text = format!(
        "\n/* {}: {name} */\n/* first, last: the loop's own bounds{down} */\n#pragma omp parallel\n",
        list(passes)
    );
    for &d in &others {
        let (id, cuts) = (format!("{}_part", INDEX[d]), CUTS[d]);
        let _ = writeln!(text, "for (int {id} = 0; {id} < {cuts}.parts; {id}++)");
    }
    text.truncate(text.trim_end().len());
    text += " {\n";
    for &d in &others {
        let (i, cuts) = (INDEX[d], CUTS[d]);
        let _ = writeln!(
            text,
            "    nw_range {i}_range = nw_meet(nw_part({cuts}, {i}_part), {i}_first, {i}_last);"
        );
    }
    let ids: Vec<String> = others.iter().map(|d| format!("{}_part", INDEX[*d])).collect();
    let (i, cuts) = (INDEX[dimension], CUTS[dimension]);
    let _ = writeln!(
        text,
        "    nw_for_exclusive ({i}, {i}_first, {i}_last, {cuts}, {})",
        ids.join(" + ")
    );
    for &d in &others {
        let i = INDEX[d];
        let _ = writeln!(
            text,
            "        for (long {i} = {i}_range.begin; {i} < {i}_range.end; {i}++)"
        );
    }
    let deepest = distributed.last().map_or(1, |d| d + 1);
    let _ = writeln!(
        text,
        "            ; /* the loop's body for {variable}{} */",
        subscripts(deepest)
    );
    text + "    #pragma omp barrier\n}\n"
}

/// Code that binds rows for the ascending loops, and distributes the descending ones in reverse order.
pub(crate) fn static_inverse(names: &SnippetNames, blame: &Blame) -> String {
    let SnippetNames { variable, .. } = names;
    let passes = |inverse| -> Vec<&Pass> {
        let one = |p: &&Pass| is_schedulable(&p.division) && p.division.inverse == inverse;
        blame.passes.iter().filter(one).collect()
    };
    format!(
        "{SCHEDULES}{BIND}\n{}nw_place({variable}, nw_bind(NW_ROWS));\n\n\
         /* {}: schedule(static), as it is */\n\
         /* {}: counts down */\n\
         #pragma omp parallel\n\
         nw_for_static_inverse (i, 0, nx)\n    \
             ; /* the loop's body for {variable}[nx - 1 - i] */\n{}",
        names.adopt(1),
        list(&passes(false)),
        list(&passes(true)),
        names.forget()
    )
}

/// The code for one policy of libnodewise.
pub(crate) fn place(names: &SnippetNames, policy: &str, dimensions: usize) -> String {
    format!(
        "{LIBRARY}{}nw_place({}, {policy});\n{}",
        names.adopt(dimensions),
        names.variable,
        names.forget()
    )
}

/// Code that binds rows or columns to their threads' nodes.
pub(crate) fn bind(to: &SnippetNames, how: Distribution) -> String {
    let rows = how == Distribution::BindRows;
    let (unit, dimensions) = if rows { ("NW_ROWS", 1) } else { ("NW_COLUMNS", 2) };
    let library = format!(
        "{SCHEDULES}{BIND}{}nw_place({}, nw_bind({unit}));\n{}",
        to.adopt(dimensions),
        to.variable,
        to.forget()
    );
    match rows {
        true => format!(
            "{library}/* or, without the library: */\n{}",
            parallel_initialisation(to)
        ),
        false => library,
    }
}

/// Code that assigns pages to the nodes in turn.
pub(crate) fn cyclic(to: &SnippetNames, pages: u32) -> String {
    format!(
        "{}/* or, without the library: */\n{}",
        place(to, &format!("nw_cyclic(NW_PAGES, {pages})"), 1),
        interleave(to)
    )
}

/// Code that makes a copy on each node.
pub(crate) fn replicate(to: &SnippetNames) -> String {
    let SnippetNames {
        variable,
        used,
        touched,
        ..
    } = to;
    format!(
        "{LIBRARY}{}\
         nw_replicate({variable}); /* once it is filled, after {touched} */\n\
         #pragma omp parallel /* {used}: each thread reads the copy of its node */\n\
         {{\n    const void *near = nw_nearest({variable});\n    (void)near; /* the loop's body, with near for {variable} */\n}}\n{}",
        to.adopt(1),
        to.forget()
    )
}

pub(crate) fn parallel_initialisation(names: &SnippetNames) -> String {
    let SnippetNames {
        variable,
        touched,
        used,
        ..
    } = names;
    format!(
        "#pragma omp parallel for schedule(static) /* {touched}; as the loop at {used} */\n\
         for (size_t i = 0; i < nx; i++)\n    {variable}[i] = 0;\n"
    )
}

/// Interleaving by tools that are available everywhere.
fn interleave(names: &SnippetNames) -> String {
    let SnippetNames { variable, kind, .. } = names;
    if *kind == ObjectKind::Heap {
        return format!(
            "{variable} = numa_alloc_interleaved(bytes); /* <numa.h>, -lnuma; instead of malloc; numa_free({variable}, bytes) */\n"
        );
    }
    format!(
        "mbind({variable}, sizeof {variable}, MPOL_INTERLEAVE, numa_all_nodes_ptr->maskp, numa_all_nodes_ptr->size + 1, 0); \
         /* <numa.h>, <numaif.h>, -lnuma; before its first touch */\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_c_can_say_is_used_as_a_name() {
        assert!(is_expression("rhs") && is_expression("mesh->cells") && is_expression("a[0].b"));
        assert!(!is_expression("operator new(unsigned long)") && !is_expression("") && !is_expression("3d"));
    }
}
