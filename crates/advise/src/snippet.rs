//! Lines of C to copy: libnodewise where a distribution does it, plain OpenMP where that will do.
//!
//! A profile knows an array's name, its allocation and its loops, not its types or bounds: those are
//! `item` (bytes), `nx`, `ny`, `nz`, and the reader's to fill in.

use crate::advice::{Case, deals, in_source_order};
use crate::{Blame, Distribution, Pass};
use nodewise_analysis::Pattern;
use nodewise_profile::{ObjectKind, Site};
use std::fmt::Write;

/// Names that snippets use themselves.
const TAKEN: [&str; 12] = [
    "extents", "distr", "rows", "columns", "planes", "item", "nx", "ny", "nz", "i", "j", "k",
];
/// By dimension: its extent, its index, the cuts of it.
const EXTENT: [&str; 3] = ["nx", "ny", "nz"];
const INDEX: [&str; 3] = ["i", "j", "k"];
const CUTS: [&str; 3] = ["rows", "columns", "planes"];

/// What snippets talk about.
pub(crate) struct Place {
    /// A C name for the object.
    variable: String,
    kind: ObjectKind,
    /// Where it was allocated, if that is known.
    allocated: Option<String>,
    /// Whether libnodewise allocated it, and so knows it.
    is_known: bool,
    /// Where it was first touched.
    pub touched: String,
    /// Where it is used.
    pub used: String,
}

impl Place {
    pub fn new(blame: &Blame, case: &Case<'_>) -> Self {
        let known =
            |place: Option<&String>, otherwise: &str| place.map_or(otherwise.to_owned(), Clone::clone);
        let name = &case.object.name;
        let site = case.context.profile.site(case.object.site);
        Self {
            variable: if is_expression(name) && !TAKEN.contains(&&**name) {
                name.clone()
            } else {
                "array".to_owned()
            },
            kind: case.object.kind,
            allocated: site.and_then(allocated_at),
            is_known: site.is_some_and(is_ours),
            touched: known(blame.first_touched.as_ref().map(|t| &t.at), "its initialisation"),
            used: known(blame.used_by.as_ref().map(|u| &u.at), "its main loop"),
        }
    }

    /// Tells libnodewise about the array; `known` is what the profile says of its extents.
    fn adopt(&self, dimensions: usize, known: &str) -> String {
        let Self { variable, .. } = self;
        let extents = EXTENT[..dimensions].join(", ");
        let subscripts: String = INDEX[..dimensions].iter().map(|i| format!("[{i}]")).collect();
        let mut text = format!("size_t extents[] = {{{extents}}}; /* of {variable}{subscripts}{known} */\n");
        if !self.is_known {
            let when = match (&self.allocated, self.kind) {
                (Some(at), ObjectKind::Mapping) => {
                    format!("unless nw_alloc made it; after its allocation at {at}")
                }
                (Some(at), _) => format!("after its allocation at {at}"),
                (None, ObjectKind::Static) => "at the start of main".to_owned(),
                (None, _) => "after its allocation".to_owned(),
            };
            let _ = writeln!(
                text,
                "nw_adopt({variable}, item, {dimensions}, extents); /* {when}; item: bytes of {variable}{subscripts} */"
            );
        }
        text
    }
}

/// A C name, member or element.
fn is_expression(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.->[]".contains(c))
}

/// `file:line` of the innermost frame that is the program's.
fn allocated_at(site: &Site) -> Option<String> {
    let frame = site.frames.iter().find(|f| f.line > 0)?;
    Some(format!("{}:{}", frame.file_name(), frame.line))
}

/// Whether libnodewise made the array.
fn is_ours(site: &Site) -> bool {
    site.frames.iter().any(|f| f.function.starts_with("nw_alloc"))
}

const SCHEDULES: &str = "#include <nodewise_schedule.h> /* link with -lnodewise */\n";

/// A Latin square, and each loop in parts that meet it.
pub(crate) fn block_exclusive(place: &Place, blame: &Blame, dimensions: u32) -> String {
    let variable = &place.variable;
    let dealt: Vec<usize> = (0..3).filter(|d| dimensions >> d & 1 == 1).collect();
    let deepest = dealt.last().map_or(1, |d| d + 1);
    let mut text = SCHEDULES.to_owned();
    text += &place.adopt(deepest, &known_extents(blame));
    let _ = writeln!(
        text,
        "nw_distr *distr = nw_describe({variable}, nw_block_exclusive({dimensions}));\nnw_distribute(distr);"
    );
    let cuts: Vec<String> = dealt
        .iter()
        .map(|d| format!("{} = nw_distr_cuts(distr, {d})", CUTS[*d]))
        .collect();
    let _ = writeln!(text, "nw_cuts {};", cuts.join(", "));
    for &d in &dealt {
        let passes = passes_over(blame, d);
        if !passes.is_empty() {
            text += &exclusive_loop(place, &passes, d, &dealt);
        }
    }
    text
}

/// Rows of a y-wise object are the parts in which its blocks begin again.
fn known_extents(blame: &Blame) -> String {
    let mut dealt = blame
        .passes
        .iter()
        .filter(|p| p.division.pattern == Pattern::YWise);
    dealt
        .next()
        .map_or(String::new(), |p| format!(", nx = {} here", p.division.repeat))
}

fn passes_over(blame: &Blame, dimension: usize) -> Vec<&Pass> {
    let over = |p: &&Pass| deals(&p.division) && p.division.pattern.dimension() == Some(dimension);
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

/// The loops over one dimension, in parts of the others.
fn exclusive_loop(place: &Place, passes: &[&Pass], dimension: usize, dealt: &[usize]) -> String {
    let Place { variable, .. } = place;
    let name = passes[0].division.pattern.name();
    let others: Vec<usize> = dealt.iter().copied().filter(|d| *d != dimension).collect();
    let mut text = format!("\n/* {}: {name} */\n#pragma omp parallel\n", list(passes));
    for &d in &others {
        let (id, cuts) = (format!("{}_part", INDEX[d]), CUTS[d]);
        let _ = writeln!(text, "for (int {id} = 0; {id} < {cuts}.parts; {id}++)");
    }
    text.truncate(text.trim_end().len());
    text += " {\n";
    let ids: Vec<String> = others.iter().map(|d| format!("{}_part", INDEX[*d])).collect();
    for (&d, id) in others.iter().zip(&ids) {
        let (range, cuts) = (format!("{}_range", INDEX[d]), CUTS[d]);
        let _ = writeln!(text, "    nw_range {range} = nw_part({cuts}, {id});");
    }
    let _ = writeln!(
        text,
        "    nw_for_exclusive ({}, 0, {}, {}, {})",
        INDEX[dimension],
        EXTENT[dimension],
        CUTS[dimension],
        ids.join(" + ")
    );
    for &d in &others {
        let i = INDEX[d];
        let _ = writeln!(
            text,
            "        for (long {i} = {i}_range.begin; {i} < {i}_range.end; {i}++)"
        );
    }
    let deepest = dealt.last().map_or(1, |d| d + 1);
    let subscripts: String = INDEX[..deepest].iter().map(|i| format!("[{i}]")).collect();
    let _ = writeln!(
        text,
        "            ; /* the loop's body for {variable}{subscripts} */"
    );
    text + "    #pragma omp barrier\n}\n"
}

/// Rows where the ascending loops want them, and the descending ones dealt the other way round.
pub(crate) fn static_inverse(place: &Place, blame: &Blame) -> String {
    let Place { variable, .. } = place;
    let passes = |inverse| -> Vec<&Pass> {
        let one = |p: &&Pass| deals(&p.division) && p.division.inverse == inverse;
        blame.passes.iter().filter(one).collect()
    };
    format!(
        "{SCHEDULES}{}nw_place({variable}, nw_bind(NW_ROWS));\n\n\
         /* {}: schedule(static), as it is */\n\
         /* {}: counts down */\n\
         #pragma omp parallel\n\
         nw_for_static_inverse (i, 0, nx)\n    \
             ; /* the loop's body for {variable}[nx - 1 - i] */\n",
        place.adopt(1, ""),
        list(&passes(false)),
        list(&passes(true)),
    )
}

/// One policy.
pub(crate) fn place(place: &Place, policy: &str, extents: &[&str]) -> String {
    let known = extents.first().copied().unwrap_or_default();
    format!(
        "#include <nodewise.h> /* link with -lnodewise */\n{}nw_place({}, {policy});\n",
        place.adopt(extents.len().max(1), known),
        place.variable
    )
}

/// Rows or columns to their threads.
pub(crate) fn bind(to: &Place, blame: &Blame, how: Distribution) -> String {
    match how {
        Distribution::BindRows => {
            let library = place(to, "nw_bind(NW_ROWS)", &[""]);
            format!(
                "{library}\n/* or, without the library: */\n{}",
                parallel_initialisation(to)
            )
        }
        _ => {
            let parts = blame.passes.iter().map(|p| p.division.repeat).max().unwrap_or(1);
            place(to, "nw_bind(NW_COLUMNS)", &[&format!(", nx = {parts} here"), ""])
        }
    }
}

/// Pages to the nodes in turn.
pub(crate) fn cyclic(to: &Place, pages: u32) -> String {
    format!(
        "{}\n/* or, without the library: */\n{}",
        place(to, &format!("nw_cyclic(NW_PAGES, {pages})"), &[""]),
        interleave(to)
    )
}

/// A copy on each node.
pub(crate) fn replicate(to: &Place) -> String {
    let Place {
        variable,
        used,
        touched,
        ..
    } = to;
    format!(
        "#include <nodewise.h> /* link with -lnodewise */\n{}\
         nw_replicate({variable}); /* once it is filled, after {touched} */\n\
         #pragma omp parallel /* {used}: each thread reads the copy of its node */\n\
         {{\n    const void *near = nw_nearest({variable});\n    (void)near; /* the loop's body, with near for {variable} */\n}}\n",
        to.adopt(1, "")
    )
}

pub(crate) fn parallel_initialisation(place: &Place) -> String {
    let Place {
        variable,
        touched,
        used,
        ..
    } = place;
    format!(
        "#pragma omp parallel for schedule(static) /* {touched}; as the loop at {used} */\n\
         for (size_t i = 0; i < nx; i++)\n    {variable}[i] = 0;\n"
    )
}

pub(crate) fn same_schedule(place: &Place) -> String {
    let one = |at: &str| {
        format!(
            "#pragma omp parallel for schedule(static) /* {at}: same bounds, same thread count */\n\
             for (long i = 0; i < nx; i++)\n    ; /* the loop's body */\n"
        )
    };
    one(&place.touched) + &one(&place.used)
}

/// What is at hand everywhere.
fn interleave(place: &Place) -> String {
    let Place { variable, kind, .. } = place;
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
