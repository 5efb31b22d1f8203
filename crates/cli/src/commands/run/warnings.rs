//! Warnings about parts of a placement that could not be enforced.

use super::label::label;
use nodewise_enforce::{Achieved, Plan, RuleFound};
use nodewise_report::whole_percent;

/// Warns if the program is an instrumented build, which is slow.
pub fn instrumented(plan: &Plan) -> Option<String> {
    let target = plan.target.as_ref()?;
    let counts = |l: &std::path::PathBuf| l.ends_with("libnodewise-rt.so");
    target.libraries.iter().any(counts).then(|| {
        let name = target.path.file_name().unwrap_or_default().to_string_lossy();
        format!("warning: {name} is the instrumented build: run the plain one")
    })
}

/// States how many of the rules for its code and variables were found in the program, and how many of these by function
/// names and call order alone.
pub fn matched_rules_summary(plan: &Plan) -> Option<String> {
    let how = match plan.by_order() {
        0 => String::new(),
        n => format!("; {n} of them by function names and the order of calls only: build with -g for lines"),
    };
    let of_code: Vec<_> = plan.rules.iter().filter(|r| r.of_code).collect();
    let found = of_code.iter().filter(|r| r.missing.is_none()).count();
    (!of_code.is_empty()).then(|| {
        format!(
            "{found} of {} rules name code or variables of this program{how}",
            of_code.len()
        )
    })
}

/// One warning for each rule that matched nothing in the program, or no object while it ran.
pub fn unplaced(plan: &Plan, achieved: Option<&Achieved>) -> Vec<String> {
    let pages: u64 = plan.rules.iter().map(|r| r.pages).sum();
    let share = |r: &RuleFound| whole_percent(r.pages as f64 / pages.max(1) as f64);
    let placed = achieved.filter(|a| a.processes > 0);
    let mut lines = Vec::new();
    for (i, rule) in plan.rules.iter().enumerate() {
        let absent = placed
            .and_then(|a| a.rules.get(i))
            .is_some_and(|r| r.objects == 0);
        let has_files = plan.files.iter().any(|f| f.rule == i && !f.found.is_empty());
        let why = match &rule.missing {
            _ if has_files => continue,
            Some(why) => why,
            None if absent && rule.by_order => "never told from others without line tables: build with -g",
            None if absent => "no such object appeared",
            None => continue,
        };
        let of_map = match rule.pages {
            0 => String::new(), // of the command line
            _ => format!(" ({} of the map's pages)", share(rule)),
        };
        lines.push(format!("warning: unmatched rule: {}{of_map}: {why}", label(rule)));
    }
    lines
}
