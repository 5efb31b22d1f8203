//! Writes the exact access counts of each page as CSV.

use nodewise_lab::{GuestPage, GuestRun};
use std::fmt::Write;

/// CSV with a header and a line for each page of each run; the columns are documented in `docs/lab.md`.
pub fn csv(outcomes: &[GuestRun], nodes: usize) -> String {
    let mut text = String::from("run,under,process,rule,object,page,home");
    for node in 0..nodes {
        let _ = write!(text, ",node{node}");
    }
    text.push('\n');
    for (run, outcome) in outcomes.iter().enumerate() {
        let under = quoted(&outcome.under);
        for page in &outcome.page_list {
            let _ = writeln!(text, "{run},{under},{}", line(outcome, page));
        }
    }
    text
}

fn line(outcome: &GuestRun, page: &GuestPage) -> String {
    let object = page.object.and_then(|o| outcome.objects.get(o));
    let mut line = match object {
        Some(o) => {
            let rule = o.rule.map_or(String::new(), |r| r.to_string());
            format!("{},{rule},{}", o.process, o.page)
        }
        None => ",,".to_owned(),
    };
    let _ = write!(line, ",{},{}", page.page, page.home);
    for count in &page.accesses {
        let _ = write!(line, ",{count}");
    }
    line
}

/// Quotes a field: paths may contain commas and quotes.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_lab::GuestObject;

    #[test]
    fn a_page_is_a_line_and_pages_of_no_object_say_nothing_of_one() {
        let object = GuestObject {
            process: 77,
            page: 16,
            ..GuestObject::default()
        };
        let page = |page, object| GuestPage {
            page,
            object,
            home: 1,
            accesses: vec![3, 0],
        };
        let outcome = GuestRun {
            under: "map:a,b".to_owned(),
            objects: vec![object],
            page_list: vec![page(17, Some(0)), page(99, None)],
            ..GuestRun::default()
        };
        let expected = "run,under,process,rule,object,page,home,node0,node1\n\
                        0,\"map:a,b\",77,,16,17,1,3,0\n\
                        0,\"map:a,b\",,,,99,1,3,0\n";
        assert_eq!(csv(&[outcome], 2), expected);
    }
}
