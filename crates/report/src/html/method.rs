//! How the figures were got, and how far to trust them.

use super::markup::{Text, figure, prose};
use crate::{Coverage, Report, percent};
use std::fmt::Write;

/// Coverage, definitions, assumptions.
pub fn write(report: &Report) -> String {
    let mut html = format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How far to trust this</h2><p>{}</p>\
         <dl class=\"sources\"><dt>Accesses</dt><dd>Loads and stores as executed, counted {} by <code>{}</code> per thread, page and slice (<code>{}</code>).</dd>\
         <dt>Shares, balances, exclusivity</dt><dd>Computed from those counts for threads placed <code>{}</code>; balance is by the node that holds the page.</dd>\
         <dt>Time</dt><dd>An estimate with a range: traffic from touched cache lines, routed over the machine’s links, calibrated by the recorded run.</dd></dl>",
        coverage(&report.coverage),
        if report.program.exact {
            "exactly"
        } else {
            "by samples"
        },
        Text(&report.program.observer),
        Text(&report.program.slicing),
        Text(&report.affinity.name),
    );
    if !report.notes.is_empty() {
        html.push_str("<ul>");
        for note in &report.notes {
            let _ = write!(html, "<li>{}</li>", prose(note));
        }
        html.push_str("</ul>");
    }
    html.push_str("</section>");
    html
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
