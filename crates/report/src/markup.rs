//! Escapes text for HTML and SVG.

use std::fmt;

/// Text that is displayed escaped, for use between tags and inside quoted attributes.
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

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn nothing_can_be_opened_or_closed() {
        let escaped = Text("</title><b a='\"'>&").to_string();
        assert_eq!(escaped, "&lt;/title&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }
}
