//! Text that goes into HTML. Whatever a program contains, it stays text.

use std::fmt::Write;

/// Escapes everything that has a meaning in HTML. The result can be used in elements and in quoted
/// attributes. Control characters, and characters that change the writing direction, would make the text look
/// different from what it is. They become `�`.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON for a `<script type="application/json">`. Nothing in it can end the element.
pub(super) fn script_json(value: &serde_json::Value) -> String {
    let json = value.to_string();
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(escaped, "\\u{:04x}", c as u32).expect("writing to a string");
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_stays_text() {
        assert_eq!(
            escape("</script><img src=x onerror='\"'>&"),
            "&lt;/script&gt;&lt;img src=x onerror=&#39;&quot;&#39;&gt;&amp;"
        );
        assert_eq!(escape("a\u{202e}b\u{0}\tc"), "a\u{fffd}b\u{fffd}\tc");
        let escaped = script_json(&serde_json::json!({ "a": "</script><!--\u{2028}&" }));
        assert_eq!(escaped, r#"{"a":"\u003c/script\u003e\u003c!--\u2028\u0026"}"#);
        let back: serde_json::Value = serde_json::from_str(&escaped).expect("it is still JSON");
        assert_eq!(back["a"], "</script><!--\u{2028}&");
    }
}
