//! The HTML document around the page's script: with links if it is served, self-contained as a file.

use crate::base64::base64;
use crate::{SCRIPT, STYLE};
use nodewise_report::Text;
use sha2::{Digest, Sha256};

const SHELL: &str = include_str!("shell.html");

/// The document for a server, which serves script and style as documents of their own.
#[must_use]
pub fn served(title: &str) -> String {
    fill(|part| match part {
        "title" => titled(title),
        "style" => "<link rel=\"stylesheet\" href=\"page.css\">".to_owned(),
        "script" => "<script type=\"module\" src=\"page.js\"></script>".to_owned(),
        "text" => {
            "<p>This page is drawn by its script; <code>nodewise report</code> says the same in text.</p>"
                .into()
        }
        _ => String::new(),
    })
}

/// The document as a single file. Its content security policy names style and script by their hashes, so that nothing
/// else in the file can run. `documents` are in base64; `text` is shown if scripts are disabled.
#[must_use]
pub(crate) fn whole(title: &str, text: &str, documents: &str) -> String {
    let script = inline(SCRIPT);
    fill(|part| match part {
        "policy" => format!(
            "\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
             script-src 'sha256-{}'; img-src data: blob:; base-uri 'none'; form-action 'none'\">",
            hash(STYLE),
            hash(&script)
        ),
        "title" => titled(title),
        "style" => format!("<style>{STYLE}</style>"),
        "script" => format!("<script type=\"module\">{script}</script>"),
        "text" => format!("<pre>{}</pre>", Text(text)),
        "documents" => format!("<script type=\"text/plain\" id=\"documents\">{documents}</script>\n"),
        _ => String::new(),
    })
}

fn titled(title: &str) -> String {
    format!("{} · nodewise", Text(title))
}

/// Replaces each `{{part}}` in one pass, so that placeholders in inserted text are not replaced.
fn fill(part: impl Fn(&str) -> String) -> String {
    let mut page = String::new();
    let mut rest = SHELL;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the shell closes its braces");
        page.push_str(before);
        page.push_str(&part(name));
        rest = after;
    }
    page + rest
}

/// Escapes a script for a script element. The escaped sequences occur in strings only, where a backslash does not
/// change them.
fn inline(script: &str) -> String {
    script
        .replace("</script", "<\\/script")
        .replace("<script", "\\x3cscript")
        .replace("<!--", "\\x3c!--")
}

/// The SHA-256 hash of a text, in the form that content security policies use.
fn hash(text: &str) -> String {
    base64(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        let page = whole("{{script}}", "{{style}}</noscript>", "");
        assert!(page.contains("<title>{{script}} · nodewise</title>"));
        assert!(page.contains("<pre>{{style}}&lt;/noscript&gt;</pre>"));
    }

    #[test]
    fn the_hash_is_what_a_browser_computes() {
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn a_script_cannot_end_itself() {
        let script = inline("let a = '</script><!--<script>'");
        assert_eq!(script, "let a = '<\\/script>\\x3c!--\\x3cscript>'");
        assert!(!STYLE.contains("</style"));
    }
}
