//! How the figures were got, and how far to trust them.

use super::markup::{Text, figure, prose};
use crate::{Coverage, Report, Sampling, count, percent, seconds};
use std::fmt::Write;

/// Coverage, definitions, assumptions.
pub fn write(report: &Report) -> String {
    if let Some(sampling) = &report.sampling {
        return samples(report, sampling);
    }
    let mut html = format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How far to trust this</h2><p>{}</p>\
         <dl class=\"sources\"><dt>Accesses</dt><dd>Loads and stores as executed, counted exactly by <code>{}</code> per thread, page and slice (<code>{}</code>).</dd>\
         <dt>Shares, balances, exclusivity</dt><dd>Computed from those counts for threads placed <code>{}</code>; balance is by the node that holds the page.</dd>\
         <dt>Time</dt><dd>An estimate with a range: traffic from touched cache lines, routed over the machine’s links, calibrated by the recorded run.</dd></dl>",
        coverage(&report.coverage),
        Text(&report.program.observer),
        Text(&report.program.slicing),
        Text(&report.affinity.name),
    );
    html.push_str(&notes(report));
    html.push_str("</section>");
    html
}

fn notes(report: &Report) -> String {
    if report.notes.is_empty() {
        return String::new();
    }
    let items: String = report
        .notes
        .iter()
        .map(|n| format!("<li>{}</li>", prose(n)))
        .collect();
    format!("<ul>{items}</ul>")
}

/// What sampling saw, and what it took.
fn samples(report: &Report, sampling: &Sampling) -> String {
    let whole = |key: &str, value: u64| figure(&format!("/sampling/{key}"), value, &count(value));
    let share = |key: &str, value: f64| figure(&format!("/sampling/{key}"), value, &percent(value));
    format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How far to trust this</h2>\
         <p><strong>Sampled, not counted.</strong> {} of the kernel’s hinting faults, and {} lost.</p>\
         <dl class=\"sources\"><dt>Samples</dt><dd>By <code>{}</code>, over {}: one of {} hinting faults at the end; \
         {} first touches and {} copies on write apart.</dd>\
         <dt>Cost</dt><dd>{} of the program’s CPU time; {} were allowed.</dd>\
         <dt>Shares, exclusivity</dt><dd>Of samples, for threads placed <code>{}</code>; a page is judged from {} samples on. \
         Bounds of exclusivity, at 95 %, are of accesses: a sample of one node may stand for {} times as many as one \
         of another.</dd></dl>{}</section>",
        whole("samples", sampling.samples),
        whole("lost", sampling.lost),
        Text(&report.program.observer),
        figure("/sampling/seconds", sampling.seconds, &seconds(sampling.seconds)),
        sampling.period.max(1),
        whole("first_touches", sampling.first_touches),
        whole("copies", sampling.copies),
        share("cost", sampling.cost),
        share("budget", sampling.budget),
        Text(&report.affinity.name),
        sampling.minimum_samples,
        figure(
            "/sampling/intensity",
            sampling.intensity,
            &sampling.intensity.to_string()
        ),
        notes(report)
    )
}

fn coverage(coverage: &Coverage) -> String {
    let Some(share) = coverage.share else {
        return "Coverage is unknown: the run was too short, or the kernel did not permit sampling of CPU time."
            .to_owned();
    };
    let mut text = format!(
        "<strong>Coverage {}</strong> of the program’s own CPU time ran in code whose accesses are counted.",
        figure("/coverage/share", share, &percent(share))
    );
    let missed: Vec<String> = coverage
        .missed_modules
        .iter()
        .take(4)
        .map(|m| format!("<code>{}</code> {}", Text(&m.name), percent(m.share)))
        .collect();
    if !missed.is_empty() {
        let _ = write!(text, " Not counted: {}.", missed.join(", "));
    }
    let _ = write!(
        text,
        " Waiting in threading runtimes took {} and the kernel {} of all CPU time.",
        figure("/coverage/waiting", coverage.waiting, &percent(coverage.waiting)),
        figure("/coverage/kernel", coverage.kernel, &percent(coverage.kernel))
    );
    text
}
