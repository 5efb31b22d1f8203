//! The policies side by side: each row is its own small figure.

use super::markup::{END, Text, bar, figure, head};
use crate::{Policy, Report, count, percent, ratio, seconds};
use std::fmt::Write;

/// The comparison; nothing where every row would be the same.
pub fn write(report: &Report) -> String {
    if report.has_one_node() {
        return String::new();
    }
    if !report.program.exact {
        return samples(report);
    }
    let longest = report.policies.iter().filter_map(|p| p.seconds_range);
    let longest = longest.map(|range| range[1]).fold(0.0, f64::max);
    let mut html = String::from(
        "<section aria-labelledby=\"policies\"><h2 id=\"policies\">What each policy would cost</h2>\
         <p>The bar is the typical predicted wall time, the line across its end the range; shorter is better. \
         Ranges overlap because they share what is not known; the speed-up over first-touch compares like with like. \
         Shares and balances follow from the counted accesses, time is an estimate.</p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"policies\">",
    );
    html.push_str(&head(
        "policies",
        &[
            "Policy",
            "=Predicted time",
            ">Speed-up",
            "=Local accesses",
            ">Access balance",
            ">Page balance",
            ">Pages moved",
        ],
    ));
    for (i, policy) in report.policies.iter().enumerate() {
        html.push_str(&row(i, policy, longest, report.recommends(policy)));
    }
    html + END + "</div></section>"
}

fn row(i: usize, policy: &Policy, longest: f64, recommended: bool) -> String {
    let share = |key: &str, value: f64| figure(&format!("/policies/{i}/{key}"), value, &percent(value));
    let mut html = name(policy, recommended);
    let time = estimate(i, "seconds", (policy.seconds, policy.seconds_range), seconds);
    let speedup = estimate(i, "speedup", (policy.speedup, policy.speedup_range), ratio);
    let _ = write!(
        html,
        "<td class=\"wide\">{}</td><td class=\"n\">{time}</td><td class=\"n\">{speedup}</td><td class=\"wide\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        range(policy, longest),
        bar("local", policy.local_fraction),
        share("local_fraction", policy.local_fraction),
        policy
            .access_balance
            .map(|b| share("access_balance", b))
            .unwrap_or_default(),
        share("page_balance", policy.page_balance),
        moved(i, policy),
    );
    html
}

/// The beginning of a policy's row.
fn name(policy: &Policy, recommended: bool) -> String {
    let mark = match policy.policy.as_str() {
        "first-touch" if recommended => " <small class=\"mark\">today · keep it</small>",
        "first-touch" => " <small class=\"mark\">today</small>",
        _ if recommended => " <small class=\"mark best\">recommended</small>",
        _ => "",
    };
    format!(
        "<tr{}><th scope=\"row\"><code>{}</code>{mark}</th>",
        if recommended { " class=\"best\"" } else { "" },
        Text(&policy.policy)
    )
}

fn moved(i: usize, policy: &Policy) -> String {
    let pointer = format!("/policies/{i}/migrations");
    figure(&pointer, policy.migrations, &count(policy.migrations))
}

/// The comparison by samples: no time, no load.
fn samples(report: &Report) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"policies\"><h2 id=\"policies\">What each policy would make local</h2>\
         <p>By samples: a page is seen once a scan, however often it is used. So shares are shares of pages in use, \
         not of accesses, and what a policy would cost or save in time does not follow from them.</p>",
    );
    html.push_str(&head(
        "policies",
        &["Policy", "=Local samples", ">Page balance", ">Pages moved"],
    ));
    for (i, policy) in report.policies.iter().enumerate() {
        let share = |key: &str, value: f64| figure(&format!("/policies/{i}/{key}"), value, &percent(value));
        let _ = write!(
            html,
            "{}<td class=\"wide\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            name(policy, report.recommends(policy)),
            bar("local", policy.local_fraction),
            share("local_fraction", policy.local_fraction),
            share("page_balance", policy.page_balance),
            moved(i, policy)
        );
    }
    html + END + "</section>"
}

/// A typical value above its range.
fn estimate(i: usize, key: &str, value: (Option<f64>, Option<[f64; 2]>), text: fn(f64) -> String) -> String {
    let (Some(typical), Some(ends)) = value else {
        return String::new();
    };
    let at = |key: &str, value: f64| figure(&format!("/policies/{i}/{key}"), value, &text(value));
    format!(
        "{} <small>{} – {}</small>",
        at(key, typical),
        at(&format!("{key}_range/0"), ends[0]),
        at(&format!("{key}_range/1"), ends[1])
    )
}

/// A bar to the typical time with the range across its end; the axis starts at zero.
fn range(policy: &Policy, longest: f64) -> String {
    let x = |t: f64| if longest > 0.0 { t / longest * 99.0 } else { 0.0 };
    let [low, high] = policy.seconds_range.unwrap_or_default().map(x);
    format!(
        "<svg class=\"range\" viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"fill\" y=\"2\" width=\"{typical:.2}\" height=\"12\"/>\
         <path class=\"whisker\" d=\"M{low:.2} 8H{high:.2}M{low:.2} 4V12M{high:.2} 4V12\"/></svg>",
        typical = x(policy.seconds.unwrap_or_default()),
    )
}
