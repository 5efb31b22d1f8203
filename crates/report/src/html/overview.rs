//! The top of the page: what was recorded, the verdict, four figures.

use super::markup::{Text, figure, prose};
use crate::format::plural;
use crate::text::NAME_A_MACHINE;
use crate::{Outcome, Report, bytes, count, percent, seconds};
use std::fmt::Write;

/// Header, verdict, figures.
pub fn write(report: &Report) -> String {
    let mut html = header(report);
    html.push_str(&verdict(report));
    html.push_str(&figures(report));
    html
}

/// The recording host's part in the recorded time.
fn shared_cpus(report: &Report) -> String {
    let cpus = report.program.host.cpus as usize;
    match report.program.threads {
        threads if cpus > 0 && threads > cpus => {
            format!(" and {threads} threads on {}", plural(cpus, "CPU"))
        }
        _ => String::new(),
    }
}

fn header(report: &Report) -> String {
    let program = &report.program;
    let command = program.title();
    let mut html = format!(
        "<header><p class=\"kicker\">nodewise report</p><h1><code>{}</code></h1><p class=\"facts\">{} threads · {} in {} pages of {} · judged for {} ({}), threads {}</p>",
        Text(&command),
        figure("/program/threads", program.threads, &program.threads.to_string()),
        bytes(report.totals.pages * report.page_size),
        figure("/totals/pages", report.totals.pages, &count(report.totals.pages)),
        bytes(report.page_size),
        Text(&report.machine.name),
        plural(report.machine.nodes.len(), "node"),
        Text(&report.affinity.name),
    );
    if let Some(reason) = &program.truncated {
        let _ = write!(
            html,
            "<p class=\"warning\"><strong>Cut short:</strong> {}</p>",
            Text(reason)
        );
    }
    html.push_str("</header>");
    html
}

fn badge(outcome: Outcome, one_node: bool, exact: bool) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Place => ("act", "A better placement exists"),
        Outcome::Stock => ("act", "A stock command line is enough"),
        Outcome::Match => ("act", "Loops should match their data"),
        Outcome::LeaveAlone if one_node => ("calm", "Nothing to place"),
        Outcome::LeaveAlone => ("calm", "Leave it alone"),
        Outcome::NotMemoryBound => ("calm", "Not bound by memory"),
        Outcome::Unknown if !exact => ("unsure", "Samples say where, not how much"),
        Outcome::Unknown => ("unsure", "Too little was seen to say"),
    }
}

fn verdict(report: &Report) -> String {
    let (class, words) = badge(
        report.verdict.outcome,
        report.has_one_node(),
        report.program.exact,
    );
    let mut html = format!(
        "<section class=\"verdict {class}\" aria-labelledby=\"verdict\"><h2 id=\"verdict\">{words}</h2><p class=\"sentence\">{}</p>",
        prose(&report.verdict.sentence)
    );
    if report.has_one_node() {
        let _ = write!(html, "<p>{}</p>", prose(NAME_A_MACHINE));
    }
    if let Some(next) = &report.verdict.next {
        let _ = write!(
            html,
            "<div class=\"command\"><code id=\"next\">{}</code><button type=\"button\" data-copy=\"next\">Copy</button></div>",
            Text(&next.replace(" && ", " &&\n"))
        );
    }
    if !report.verdict.reasons.is_empty() {
        html.push_str("<ul>");
        for reason in &report.verdict.reasons {
            let _ = write!(html, "<li>{}</li>", prose(reason));
        }
        html.push_str("</ul>");
    }
    html.push_str("</section>");
    html
}

fn predictions(report: &Report) -> String {
    let machine = Text(&report.machine.name);
    format!(
        "{}: no measure for the predictions, which are for {machine}",
        shared_cpus(report)
    )
}

/// What the figure means, and how surely it is known.
fn exclusivity(report: &Report) -> String {
    let Some(sampling) = &report.sampling else {
        return "of accesses come from the node that uses the page most: the local share a page map can reach".into();
    };
    let seen = &sampling.exclusivity;
    let Some([low, high]) = seen.range else {
        return format!(
            "not judged: no page has the {} samples it takes",
            sampling.minimum_samples
        );
    };
    let at = |i: usize, value: f64| {
        figure(
            &format!("/sampling/exclusivity/range/{i}"),
            value,
            &percent(value),
        )
    };
    format!(
        "mean share of a page’s samples that come from one node, by {} pages with {} or more; of accesses {} – {} at 95 %",
        figure("/sampling/exclusivity/judged", seen.judged, &count(seen.judged)),
        sampling.minimum_samples,
        at(0, low),
        at(1, high)
    )
}

fn figures(report: &Report) -> String {
    let mut html = String::from("<dl class=\"figures\">");
    let mut card = |term: &str, value: String, meaning: &str| {
        let _ = write!(
            html,
            "<div><dt>{term}</dt><dd>{value}</dd><dd class=\"meaning\">{meaning}</dd></div>"
        );
    };
    let exact = report.program.exact;
    if let Some(baseline) = report.first_touch() {
        let at = report
            .policies
            .iter()
            .position(|p| std::ptr::eq(p, baseline))
            .unwrap_or(0);
        let pointer = format!("/policies/{at}/local_fraction");
        card(
            if exact {
                "Local accesses today"
            } else {
                "Local samples today"
            },
            figure(
                &pointer,
                baseline.local_fraction,
                &percent(baseline.local_fraction),
            ),
            "served by the accessing thread’s own node under first-touch, the kernel’s default",
        );
        let pointer = format!("/policies/{at}/access_balance");
        if let Some(balance) = baseline.access_balance {
            card(
                "Access balance today",
                figure(&pointer, balance, &percent(balance)),
                "100 % when all memory controllers serve equally many accesses, 0 % when one serves all",
            );
        }
    }
    card(
        "Exclusivity",
        figure(
            "/application_exclusivity",
            report.application_exclusivity,
            &percent(report.application_exclusivity),
        ),
        &exclusivity(report),
    );
    card(
        "Recorded",
        figure(
            "/program/wall_seconds",
            report.program.wall_seconds,
            &seconds(report.program.wall_seconds),
        ),
        &format!(
            "{}{}; {} {}",
            if exact {
                "with counters"
            } else {
                "while pages were sampled"
            },
            if exact { predictions(report) } else { String::new() },
            figure(
                "/totals/accesses",
                report.totals.accesses,
                &count(report.totals.accesses)
            ),
            if exact {
                "accesses, counted exactly"
            } else {
                "samples"
            }
        ),
    );
    html.push_str("</dl>");
    html
}
