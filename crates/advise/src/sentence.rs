//! The sentence that describes what happened to one object.

use crate::blame::Blame;
use crate::phrases::{FEW_LINES, percent, places};
use crate::source::SERIAL;
use nodewise_analysis::Pattern;

/// The sentence that describes one object.
pub(crate) fn sentence(blame: &Blame) -> String {
    let count = |n: usize| {
        if n == 1 {
            "one thread".to_owned()
        } else {
            format!("{n} threads")
        }
    };
    let mut text = format!("`{}`: ", blame.name);
    if let Some(touch) = &blame.first_touched {
        let alone = touch.is_alone();
        text += &format!(
            "first touched by {} at {}, ",
            count(if alone { 1 } else { touch.threads }),
            touch.at
        );
    }
    match &blame.used_by {
        Some(_) if blame.conflict.is_some() => text += &divided(blame),
        Some(used) => {
            let verb = if used.reads { "read" } else { "used" };
            let at = if used.at == SERIAL { "in" } else { "at" };
            text += &format!("{verb} by {} {at} {}", count(used.threads), used.at);
        }
        None => text += "used nowhere",
    }
    text + "; " + &bill(blame) + &few_lines(blame)
}

/// Says that most accesses are to a few lines, if they are.
fn few_lines(blame: &Blame) -> String {
    blame.few_lines.map_or_else(String::new, |few| {
        format!(
            " {} of all accesses are to a few lines of {} of its pages: {FEW_LINES}.",
            percent(few.share),
            few.pages
        )
    })
}

/// Says how loops divide the object, and what that means for its pages.
fn divided(blame: &Blame) -> String {
    let mut ways: Vec<(Pattern, bool)> = Vec::new();
    let significant = || blame.passes.iter().filter(|p| p.division.is_of_loops());
    for way in significant().map(|p| (p.division.pattern, p.division.inverse)) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways.sort_by_key(|way| (way.0.dimension(), way.1));
    let one = |way: &(Pattern, bool)| {
        let passes = significant().filter(|p| (p.division.pattern, p.division.inverse) == *way);
        let down = if way.1 { " counting down" } else { "" };
        let name = match way.0 {
            Pattern::Blocks => "in blocks out of the threads' order",
            Pattern::Strided => "in chunks dealt in turn",
            pattern => pattern.name(),
        };
        format!("{name}{down} {}", places(passes))
    };
    let ways: Vec<String> = ways.iter().map(one).collect();
    let conflict = blame.conflict.as_ref().expect("divided differently");
    let shared = match conflict.shows() {
        true => format!("{} of its pages are uniformly shared", percent(conflict.share)),
        false => format!(
            "bound in order, {} of its pages would be uniformly shared",
            percent(conflict.share_in_order)
        ),
    };
    let fine = match conflict.block_pages {
        Some(pages) if conflict.is_finer_than_pages() => {
            format!(", and loops cannot match it at this size: a node's part of a row is {pages:.2} pages")
        }
        _ => String::new(),
    };
    format!("used {}: {shared}{fine}", ways.join(", "))
}

/// Says how much of the object is remote, and which part of the predicted gain that accounts for.
fn bill(blame: &Blame) -> String {
    let remote = match 1.0 - blame.local_fraction {
        r if r <= 0.0 => "all of its accesses are local".to_owned(),
        r => format!("{} of its accesses are remote", percent(r)),
    };
    let (own, all) = (percent(blame.cost_share), percent(blame.saved_share));
    match own.strip_suffix(" %").unwrap_or_default() {
        _ if blame.saved_share <= 0.0 => format!("{remote}; no placement pays at typical figures."),
        _ if own == all => {
            format!("{remote}; it accounts for all of the {all} of the run time predicted to be saved.")
        }
        own => format!("{remote}; it accounts for {own} of the {all} of the run time predicted to be saved."),
    }
}
