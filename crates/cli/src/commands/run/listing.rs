//! A dry run's plan, for people.

use super::warnings;
use nodewise_enforce::{Plan, RuleFound};

/// Characters of a variable's value that are shown.
const VALUE: usize = 60;
/// Code ranges of a rule that are shown.
const PLACES: usize = 2;

/// The whole plan, one line each.
pub fn lines(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(target) = &plan.target {
        lines.push(format!("program  {}", target.path.display()));
    }
    let cpus: Vec<u32> = plan.threads.cpus.iter().map(|c| c.0).collect();
    lines.push(format!("nodes    {}", numbers(&plan.nodes)));
    lines.push(match plan.unreached {
        true => "threads  not bound".to_owned(),
        false => format!(
            "threads  {} on CPUs {} ({})",
            cpus.len(),
            cut(&numbers(&cpus)),
            plan.threads.name
        ),
    });
    lines.extend(
        plan.policy
            .iter()
            .map(|p| format!("policy   {p:?}").replace("NodeMask", "")),
    );
    lines.extend(
        plan.environment
            .iter()
            .map(|(k, v)| format!("set      {k}={}", cut(v))),
    );
    if plan.table.is_some() {
        lines.push("preload  places objects of 64 KiB and more before they are touched".into());
    }
    lines.extend(plan.rules.iter().flat_map(rule));
    lines.extend(plan.notes.iter().map(|note| format!("note     {note}")));
    if !plan.rules.is_empty() {
        lines.push(format!("found    {}", warnings::promise(plan)));
    }
    lines.extend(warnings::instrumented(plan));
    lines
}

fn rule(rule: &RuleFound) -> Vec<String> {
    let mut lines = vec![format!("rule     {} -> {}", label(rule), rule.distribution)];
    let mut places = rule.places.clone();
    places.dedup();
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    if !places.is_empty() {
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let at = if rule.by_order {
            "by order of calls in"
        } else {
            "at"
        };
        lines.push(format!("           {at} {}{more}", places.join(", ")));
    }
    lines.extend(
        rule.missing
            .iter()
            .map(|why| format!("           unmatched: {why}")),
    );
    lines
}

/// An object in a few words: its site is cut to the two innermost frames that are the user's.
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

/// Whether a displayed frame is of the C++ library, told by its header's name.
fn is_library(frame: &str) -> bool {
    let place = frame.rsplit(' ').next().unwrap_or(frame);
    let Some((file, _)) = place.rsplit_once(':') else {
        return false;
    };
    !file.contains('.')
        || file.starts_with("stl_")
        || ["alloc_traits.h", "new_allocator.h", "allocator.h"].contains(&file)
}

fn cut(value: &str) -> String {
    match value.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
        None => value.to_owned(),
    }
}

/// Numbers in their order, as `0-3,8` where they ascend by one, and once where they repeat.
fn numbers(values: &[u32]) -> String {
    let repeats = |period: &usize| values.iter().zip(&values[*period..]).all(|(a, b)| a == b);
    let period = (1..values.len()).find(repeats).unwrap_or(values.len());
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &value in &values[..period] {
        match runs.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(value) => last.1 = value,
            _ => runs.push((value, value)),
        }
    }
    let run = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let list = runs.iter().map(run).collect::<Vec<_>>().join(",");
    if period < values.len() {
        format!("{list} in turn")
    } else {
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_their_order() {
        for (values, text) in [
            (vec![0, 1, 2, 3, 8], "0-3,8"),
            (vec![0, 1, 0, 1, 0], "0-1 in turn"),
            (vec![3, 1, 2], "3,1-2"),
            (vec![5], "5"),
            (vec![], ""),
        ] {
            assert_eq!(numbers(&values), text);
        }
    }

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
