//! Lines of C to copy.

use crate::Blame;
use nodewise_profile::{Object, ObjectKind};

/// What snippets talk about.
pub(crate) struct Place {
    /// A C name for the object.
    variable: String,
    kind: ObjectKind,
    nodes: usize,
    /// Where it was first touched.
    pub touched: String,
    /// Where it is used.
    pub used: String,
}

impl Place {
    pub fn new(blame: &Blame, object: &Object, nodes: usize) -> Self {
        let known =
            |place: Option<&String>, otherwise: &str| place.map_or(otherwise.to_owned(), Clone::clone);
        Self {
            variable: if is_expression(&object.name) {
                object.name.clone()
            } else {
                "array".to_owned()
            },
            kind: object.kind,
            nodes,
            touched: known(blame.first_touched.as_ref().map(|t| &t.at), "its initialisation"),
            used: known(blame.used_by.as_ref().map(|u| &u.at), "its main loop"),
        }
    }
}

/// A C name, member or element.
fn is_expression(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.->[]".contains(c))
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
         for (size_t i = 0; i < n; i++)\n    {variable}[i] = 0;\n"
    )
}

pub(crate) fn same_schedule(place: &Place) -> String {
    let Place { touched, used, .. } = place;
    format!(
        "#pragma omp parallel for schedule(static) /* {touched} */\n\
         #pragma omp parallel for schedule(static) /* {used}: same bounds, same thread count */\n"
    )
}

pub(crate) fn interleave(place: &Place) -> String {
    let Place { variable, nodes, .. } = place;
    if place.kind == ObjectKind::Heap {
        return format!(
            "#include <numa.h> /* link with -lnuma */\n\
             {variable} = numa_alloc_interleaved(bytes); /* instead of malloc; numa_free({variable}, bytes) */\n"
        );
    }
    let mask = if *nodes >= 64 {
        "~0UL".to_owned()
    } else {
        format!("{:#x}UL", (1u64 << nodes) - 1)
    };
    format!(
        "#include <numaif.h> /* link with -lnuma; before its first touch, {variable} page-aligned */\n\
         unsigned long nodes = {mask};\n\
         mbind({variable}, sizeof {variable}, MPOL_INTERLEAVE, &nodes, 8 * sizeof nodes, 0);\n"
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
