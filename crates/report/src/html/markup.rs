//! Escaping, and the small shapes that several parts of the page use.

use serde::Serialize;
use std::fmt;

/// The digits of base64: 6 bits a character.
pub const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Text from outside: safe between tags and inside quoted attributes.
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(c),
        })
    }
}

/// A sentence in which `names` stand between back-ticks; a per cent sign stays with its number.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    for (i, part) in text.replace(" %", "\u{a0}%").split('`').enumerate() {
        match i % 2 {
            0 => html.push_str(&Text(part).to_string()),
            _ => html.push_str(&format!("<code>{}</code>", Text(part))),
        }
    }
    html
}

/// A figure that `--json` has under `pointer` (RFC 6901).
pub fn figure(pointer: &str, value: impl fmt::Display, text: &str) -> String {
    format!(
        "<data data-pointer=\"{pointer}\" value=\"{value}\">{text}</data>",
        text = Text(text)
    )
}

/// JSON inside a script element: `<` never appears, so the element cannot be closed from inside.
pub fn json_block(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("plain structs serialize")
        .replace('<', "\\u003c")
}

/// The start of a table. A title may begin with `>` (its column holds numbers) or `=` (a bar and its
/// number).
pub fn head(class: &str, titles: &[&str]) -> String {
    let title = |title: &&str| match title.split_at_checked(1) {
        Some((">", title)) => format!("<th scope=\"col\" class=\"n\">{}</th>", Text(title)),
        Some(("=", title)) => format!("<th scope=\"col\" colspan=\"2\">{}</th>", Text(title)),
        _ => format!("<th scope=\"col\">{}</th>", Text(title)),
    };
    let titles: String = titles.iter().map(title).collect();
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    format!("<table{class}><thead><tr>{titles}</tr></thead><tbody>")
}

/// The end of a table.
pub const END: &str = "</tbody></table>";

/// A share as a horizontal bar, beside its number and therefore hidden from screen readers.
pub fn bar(class: &str, fraction: f64) -> String {
    let width = (fraction.clamp(0.0, 1.0) * 100.0).max(if fraction > 0.0 { 0.5 } else { 0.0 });
    format!(
        "<svg class=\"bar {class}\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"100\" height=\"10\"/><rect class=\"fill\" width=\"{width:.2}\" height=\"10\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(Text("a<b>&\"'").to_string(), "a&lt;b&gt;&amp;&quot;&#39;");
        assert_eq!(prose("`x<y>` is <b>"), "<code>x&lt;y&gt;</code> is &lt;b&gt;");
        assert!(!json_block(&"</script><script>").contains('<'));
    }
}
