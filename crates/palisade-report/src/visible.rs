//! Names and messages as they are shown. Control characters in them have no effect on a terminal or a table.

use std::borrow::Cow;

/// A name in which some characters are written as in a Rust string, e.g. `\n` or `\u{1b}`. These are the
/// characters that would be invisible, or would move the cursor or the text around them.
pub fn visible(name: &str) -> Cow<'_, str> {
    if name.contains(is_hidden) {
        let shown = |c: char| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
        Cow::Owned(name.chars().map(shown).collect())
    } else {
        Cow::Borrowed(name)
    }
}

/// A text that is a program's own, as a terminal shows it: tabs and line breaks stay.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    let is_shown_otherwise = |c: char| is_hidden(c) && c != '\n' && c != '\t';
    if !text.contains(is_shown_otherwise) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_shown_otherwise(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// The name of a file in a patch. Names with control characters, quotes or backslashes are quoted as Git does.
pub fn patch_name(name: &str) -> Cow<'_, str> {
    let is_special = |c: char| is_hidden(c) || c == '"' || c == '\\';
    if !name.contains(is_special) {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if is_hidden(c) => {
                let mut bytes = [0; 4];
                quoted.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// The same as [`visible`] for a message, which may have several lines.
pub(crate) fn visible_lines(message: &str) -> String {
    message.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// The same for lines of a source text, in which places are counted in bytes. Characters that the renderer
/// does not replace itself become visible characters of the same length.
pub(crate) fn visible_source(text: &str) -> String {
    let shown = |c: char| match c.len_utf8() {
        2 if is_hidden(c) => '\u{bf}',
        3 if is_hidden(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    text.chars().map(shown).collect()
}

/// JSON with such characters escaped. JSON itself escapes only those below 32. The others can occur only
/// inside strings.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let needs_escape = |c: char| is_hidden(c) && c >= '\u{7f}';
    if json.contains(needs_escape) {
        let shown =
            |c: char| if needs_escape(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
        Cow::Owned(json.chars().map(shown).collect())
    } else {
        Cow::Borrowed(json)
    }
}

/// Control characters, line separators, and characters that change the direction of the text around them.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(visible_text("a\tb\n\u{1b}[2Jc\r\n"), "a\tb\n\\u{1b}[2Jc\\r\n");
    }

    #[test]
    fn names_in_patches() {
        for (name, shown) in [
            ("a/lock 1.pal", "a/lock 1.pal"),
            ("a/ä.pal", "a/ä.pal"),
            ("a/x\n+++ b/y", "\"a/x\\n+++ b/y\""),
            ("a/\u{1b}\"\\", "\"a/\\033\\\"\\\\\""),
            ("a/\u{202e}x", "\"a/\\342\\200\\256x\""),
        ] {
            assert_eq!(patch_name(name), shown);
        }
    }

    #[test]
    fn names() {
        for (name, shown) in [
            ("a/b c.pal", "a/b c.pal"),
            ("\u{e4}\u{4e2d}\u{fffd}.pal", "\u{e4}\u{4e2d}\u{fffd}.pal"),
            ("a\nb\t\r", "a\\nb\\t\\r"),
            ("\u{1b}[31m\u{7}\u{0}\u{7f}\u{9b}", "\\u{1b}[31m\\u{7}\\u{0}\\u{7f}\\u{9b}"),
            ("\u{202e}lap", "\\u{202e}lap"),
        ] {
            assert_eq!(visible(name), shown);
        }
        let source = "a\t\u{9b}31m \u{2028}\u{61c}\u{e4}\u{4e2d}";
        let shown = visible_source(source);
        assert_eq!(
            (shown.as_str(), shown.len()),
            ("a\t\u{bf}31m \u{fffd}\u{bf}\u{e4}\u{4e2d}", source.len())
        );
        assert_eq!(visible_json("{\"a\u{9b}\u{e4}\"}\n\u{202e}"), "{\"a\\u009b\u{e4}\"}\n\\u202e");
        assert_eq!(visible_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }
}
