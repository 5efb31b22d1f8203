//! Text output of a dry run's plan.

use super::label::label;
use super::warnings;
use nodewise_enforce::{Plan, RuleFound};
use nodewise_report::and_more;

/// Largest number of characters of a variable's value that are shown.
const MAX_VALUE_LENGTH: usize = 60;
/// Largest number of code ranges of a rule that are shown.
const MAX_RANGES_SHOWN: usize = 2;

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
    if plan.follows {
        lines.push("roles    by data: threads go where the pages are that they write".into());
    }
    if let Some(schedule) = plan.schedule {
        lines.push(format!(
            "loops    OpenMP's dynamic and guided ones are dealt by schedule({schedule})"
        ));
    }
    lines.extend(plan.policy.iter().map(|p| format!("policy   {p}")));
    lines.extend(plan.weights_line().map(|line| format!("weights  {line}")));
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
    lines.extend(warnings::matched_rules_summary(plan).map(|found| format!("found    {found}")));
    lines.extend(warnings::instrumented(plan));
    lines
}

fn rule(rule: &RuleFound) -> Vec<String> {
    let mut lines = vec![format!("rule     {} -> {}", label(rule), rule.distribution)];
    let mut places = rule.places.clone();
    places.dedup();
    let more = and_more(places.len().saturating_sub(MAX_RANGES_SHOWN), "place", "--json");
    places.truncate(MAX_RANGES_SHOWN);
    if !places.is_empty() {
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

fn cut(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE_LENGTH) {
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
        None => value.to_owned(),
    }
}

/// A list of numbers in their order: consecutive ones as a range (`0-3,8`), equal ones only once.
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
}
