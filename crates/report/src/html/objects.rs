//! Blame and advice, an object at a time.

use super::markup::{END, Text, bar, figure, head, prose};
use crate::{Object, Report, bytes, count, percent};
use std::fmt::Write;

/// Objects shown open: at most so many, and only those that account for this share of the run time.
const SHOWN: usize = 12;
const COSTLY: f64 = 0.005;
/// Objects shown folded; a page is for people, `--json` has all.
const FOLDED: usize = 200;

/// The table; below the figures of each object, what to change.
pub fn write(report: &Report) -> String {
    let mut html = String::from(if report.program.exact {
        "<section aria-labelledby=\"objects\"><h2 id=\"objects\">Objects, the costliest first</h2>\
         <p>Cost is what an object accounts for of the run time that the best placement is predicted to save over first-touch: the costs of all objects add up to that. \
         It is divided by the time their accesses spend on distance and in queues. Exclusivity near 100 % means that moving pages is enough; \
         near 1/nodes it means that everyone uses everything, and only another schedule or even spreading helps.</p>"
    } else {
        "<section aria-labelledby=\"objects\"><h2 id=\"objects\">Objects, the most remote samples first</h2>\
         <p>Pages weigh alike, however often they are used. Exclusivity near 100 % means that a page has one owner, and moving it there is enough; \
         its bounds, at 95 %, are the mean of those of the pages with enough samples to be judged.</p>"
    });
    let share = |o: &Object| o.accesses as f64 / report.totals.accesses.max(1) as f64;
    let costly = report
        .objects
        .iter()
        .take_while(|o| o.cost_share.unwrap_or_else(|| share(o)) >= COSTLY)
        .count();
    let open = costly.clamp(1, SHOWN).min(report.objects.len());
    let (shown, rest) = report.objects.split_at(open);
    let folded = &rest[..rest.len().min(FOLDED)];
    html.push_str(&table(shown, 0, report));
    if !folded.is_empty() {
        let table = table(folded, open, report);
        let _ = write!(
            html,
            "<details><summary>{} objects {}</summary>{table}</details>",
            folded.len(),
            if report.program.exact {
                "that cost less"
            } else {
                "more"
            }
        );
    }
    if rest.len() > folded.len() {
        let _ = write!(html, "<p>{} more are in the JSON.</p>", rest.len() - folded.len());
    }
    html.push_str("</section>");
    html
}

fn table(objects: &[Object], offset: usize, report: &Report) -> String {
    let mut html =
        String::from("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"objects\">");
    let counts: &[&str] = match report.program.exact {
        true => &["Object", ">Size", ">Accesses", "=Cost"],
        false => &["Object", ">Size", ">Samples"],
    };
    let figures = [">Local today", ">Exclusivity", "Sharing", "Pattern"];
    html.push_str(&head("objects", &[counts, &figures[..]].concat()));
    for (i, object) in objects.iter().enumerate() {
        html.push_str(&row(offset + i, object, report));
    }
    html + END + "</div>"
}

fn row(i: usize, object: &Object, report: &Report) -> String {
    let at = |key: &str| format!("/objects/{i}/{key}");
    format!(
        "<tr><th scope=\"row\"><code>{}</code><small>{}</small></th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         {}<td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td>{}</td><td>{}</td></tr>\
         <tr class=\"why\"><td colspan=\"{}\"><p>{} <strong>{}</strong></p>{}</td></tr>",
        Text(&object.name),
        Text(&object.site),
        figure(
            &at("pages"),
            object.pages,
            &bytes(object.pages * report.page_size)
        ),
        figure(&at("accesses"), object.accesses, &count(object.accesses)),
        object
            .cost_share
            .map(|c| cost(&at("cost_share"), c))
            .unwrap_or_default(),
        figure(
            &at("local_fraction"),
            object.local_fraction,
            &percent(object.local_fraction)
        ),
        exclusivity(i, object),
        Text(&object.sharing),
        Text(&object.pattern),
        if report.program.exact { 9 } else { 7 },
        prose(&object.blame),
        prose(&object.advice),
        snippet(object)
    )
}

fn cost(pointer: &str, share: f64) -> String {
    let figure = figure(pointer, share, &percent(share));
    format!(
        "<td class=\"wide\">{}</td><td class=\"n\">{figure}</td>",
        bar("remote", share)
    )
}

/// With its bounds, where it is known by samples only.
fn exclusivity(i: usize, object: &Object) -> String {
    let at = |key: &str, value: f64| figure(&format!("/objects/{i}/{key}"), value, &percent(value));
    match object.sampled.as_ref().map(|s| s.range) {
        None => at("exclusivity", object.exclusivity),
        Some(None) => "<small>not judged</small>".to_owned(),
        Some(Some([low, high])) => format!(
            "{} <small>{} – {}</small>",
            at("exclusivity", object.exclusivity),
            at("sampled/range/0", low),
            at("sampled/range/1", high)
        ),
    }
}

fn snippet(object: &Object) -> String {
    object.snippet.as_ref().map_or_else(String::new, |code| {
        format!(
            "<details><summary>As code</summary><pre tabindex=\"0\"><code>{}</code></pre></details>",
            Text(code)
        )
    })
}
