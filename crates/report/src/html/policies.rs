//! The policies side by side: each row is its own small figure.

use super::markup::{END, Text, bar, figure, head};
use crate::{Estimate, Policy, Report, count, percent, ratio, seconds};
use std::fmt::Write;

/// The comparison.
pub fn write(report: &Report) -> String {
    let longest = report
        .policies
        .iter()
        .filter_map(|p| p.seconds)
        .map(|s| s.max)
        .fold(0.0, f64::max);
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
    let mark = match policy.policy.as_str() {
        "first-touch" if recommended => " <small class=\"mark\">today · keep it</small>",
        "first-touch" => " <small class=\"mark\">today</small>",
        _ if recommended => " <small class=\"mark best\">recommended</small>",
        _ => "",
    };
    let mut html = format!(
        "<tr{}><th scope=\"row\"><code>{}</code>{mark}</th>",
        if recommended { " class=\"best\"" } else { "" },
        Text(&policy.policy)
    );
    match policy.seconds {
        Some(s) => {
            let _ = write!(
                html,
                "<td class=\"wide\">{}</td><td class=\"n\">{} <small>{} – {}</small></td>",
                range(s, longest),
                figure(
                    &format!("/policies/{i}/seconds/typical"),
                    s.typical,
                    &seconds(s.typical)
                ),
                figure(&format!("/policies/{i}/seconds/min"), s.min, &seconds(s.min)),
                figure(&format!("/policies/{i}/seconds/max"), s.max, &seconds(s.max)),
            );
        }
        None => html.push_str("<td colspan=\"2\">not predicted</td>"),
    }
    let speedup = policy.speedup.map_or_else(
        || "–".to_owned(),
        |s| {
            let at =
                |key: &str, value: f64| figure(&format!("/policies/{i}/speedup/{key}"), value, &ratio(value));
            format!(
                "{} <small>{} – {}</small>",
                at("typical", s.typical),
                at("min", s.min),
                at("max", s.max)
            )
        },
    );
    let _ = write!(
        html,
        "<td class=\"n\">{speedup}</td><td class=\"wide\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        bar("local", policy.local_fraction),
        share("local_fraction", policy.local_fraction),
        share("access_balance", policy.access_balance),
        share("page_balance", policy.page_balance),
        figure(
            &format!("/policies/{i}/migrations"),
            policy.migrations,
            &count(policy.migrations)
        ),
    );
    html
}

/// A bar to the typical value with the range across its end; the axis starts at zero.
fn range(s: Estimate, longest: f64) -> String {
    let x = |t: f64| if longest > 0.0 { t / longest * 99.0 } else { 0.0 };
    format!(
        "<svg class=\"range\" viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"fill\" y=\"2\" width=\"{typical:.2}\" height=\"12\"/>\
         <path class=\"whisker\" d=\"M{low:.2} 8H{high:.2}M{low:.2} 4V12M{high:.2} 4V12\"/></svg>",
        low = x(s.min),
        typical = x(s.typical),
        high = x(s.max)
    )
}
