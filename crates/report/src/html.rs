//! The report as one page: no network, no external file, readable without JavaScript.
//!
//! Everything but the page × thread figures is plain HTML and SVG written here; the script draws
//! those figures and answers the pointer and the keyboard. The content security policy admits
//! exactly the style and the script below, by their hashes, so that nothing in a symbol name can run.

mod heat;
mod machine;
pub(crate) mod markup;
mod method;
mod moves;
mod objects;
mod overview;
mod pages;
mod policies;
mod slices;

use crate::Report;
use markup::{Text, json_block};
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// The whole page.
#[must_use]
pub fn write(report: &Report) -> String {
    fill(PAGE, |key| match key {
        "policy" => format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            hash(STYLE),
            hash(SCRIPT)
        ),
        "style" => STYLE.to_owned(),
        "script" => SCRIPT.to_owned(),
        "title" => Text(&report.program.title()).to_string(),
        "version" => Text(&report.nodewise).to_string(),
        "overview" => overview::write(report),
        "policies" => policies::write(report),
        "heat" => heat::write(report),
        "objects" => objects::write(report),
        "slices" => slices::write(report),
        "pages" => pages::write(report),
        "moves" => moves::write(report),
        "machine" => machine::write(report),
        "method" => method::write(report),
        "figures" => json_block(&heat::packed(report)),
        other => unreachable!("the template names an unknown part `{other}`"),
    })
}

/// Replaces each `{{key}}` in one pass: what is filled in is never looked at again.
fn fill(template: &str, part: impl Fn(&str) -> String) -> String {
    let mut page = String::with_capacity(1 << 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (key, after) = after.split_once("}}").expect("the template closes its braces");
        page.push_str(before);
        page.push_str(&part(key));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Base64 of the SHA-256, as content security policies want it.
fn hash(text: &str) -> String {
    const ALPHABET: &[u8; 64] = markup::ALPHABET;
    let mut out = String::with_capacity(44);
    for chunk in Sha256::digest(text).chunks(3) {
        let word = chunk.iter().fold(0u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let sextet = ALPHABET[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { sextet.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filled_part_is_not_filled_again() {
        assert_eq!(super::fill("<{{a}}>", |_| "{{a}}".into()), "<{{a}}>");
    }

    #[test]
    fn the_hash_is_what_a_browser_computes() {
        assert_eq!(super::hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
