//! Short names of a map's objects.

use nodewise_enforce::RuleFound;

/// A short name of an object, with its site reduced to the two innermost frames of the user's code.
pub fn label(rule: &RuleFound) -> String {
    let mut parts = rule.object.split('`');
    let mut text = String::new();
    while let Some(part) = parts.next() {
        text += part;
        if let Some(quoted) = parts.next() {
            text += &format!("`{}`", site(quoted));
        }
    }
    text
}

fn site(text: &str) -> String {
    let frames: Vec<&str> = text.split(" < ").collect();
    let own = frames.iter().position(|f| !is_library(f)).unwrap_or(0);
    frames[own..]
        .iter()
        .take(2)
        .copied()
        .collect::<Vec<_>>()
        .join(" < ")
}

/// Whether a displayed frame belongs to the C++ library, recognised by the name of its header.
fn is_library(frame: &str) -> bool {
    let place = frame.rsplit(' ').next().unwrap_or(frame);
    let Some((file, _)) = place.rsplit_once(':') else {
        return false;
    };
    !file.contains('.')
        || file.starts_with("stl_")
        || ["alloc_traits.h", "new_allocator.h", "allocator.h"].contains(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_the_users_innermost_frames() {
        for (full, short) in [
            (
                "allocate new_allocator.h:137 < _Vector_base stl_vector.h:332 < build mesh.cpp:4 < main mesh.cpp:10 < x y.c:1",
                "build mesh.cpp:4 < main mesh.cpp:10",
            ),
            ("main p.c:5", "main p.c:5"),
            ("main", "main"),
        ] {
            assert_eq!(site(full), short);
        }
    }
}
