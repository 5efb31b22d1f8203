//! Numbers are formatted as on the page: `web/test/figures.ts` tests the page against the same file.

use nodewise_report::{bytes, count, percent, ratio, seconds};
use std::collections::BTreeMap;

#[test]
fn figures_are_written_as_on_the_page() {
    let text = include_str!("figures.json");
    let cases: BTreeMap<String, Vec<(f64, String)>> = serde_json::from_str(text).unwrap();
    for (kind, pairs) in &cases {
        for (number, expected) in pairs {
            let written = match kind.as_str() {
                "count" => count(*number as u64),
                "bytes" => bytes(*number as u64),
                "seconds" => seconds(*number),
                "percent" => percent(*number),
                "ratio" => ratio(*number),
                other => panic!("{other}"),
            };
            assert_eq!(written, *expected, "{kind} of {number}");
        }
    }
}
