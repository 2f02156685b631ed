//! The characters of an assembly file: comments become spaces, and what assemblers disagree about is refused.
//!
//! *Guarantee.* In a text that passes, each assembler sees the same lines, comments and strings:
//! 1. A string ends on its line. GNU `as` lets it go on, so that the next lines are a part of it.
//! 2. Outside of strings and comments, all characters are ASCII, printable or blank.
//! 3. A comment of several lines ends its statement.
//! 4. A line `# 12 "file.c"`, which is a mark of the preprocessor and no comment, holds nothing else.
//! 5. The file does not begin with `#NO_APP`, which changes what is a comment.

use palisade_base::Span;

/// What is refused, and where.
type Refused = (String, Span);

/// The text with its comments replaced by spaces, byte by byte, so that places stay the same.
///
/// A comment is what follows `#`, and what is between `/*` and `*/`.
pub(super) fn without_comments(text: &str) -> Result<String, Refused> {
    let mut bytes = text.as_bytes().to_vec();
    if text.starts_with("#NO_APP") {
        return refuse("a file that begins with `#NO_APP`", 0..7);
    }
    let mut at = 0;
    // Whether only blanks are before this place on its line.
    let mut is_first = true;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let length = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                let Some(length) = length else {
                    return refuse("a comment without its end", at..at + 2);
                };
                let end = at + 2 + length + 2;
                let next = bytes[end..].iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
                if bytes[at..end].contains(&b'\n') && !matches!(next, None | Some(b'\n' | b';')) {
                    return refuse("a statement after a comment of several lines", end..end + 1);
                }
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            b'#' => {
                let end = at + length_of_line(&bytes[at..]);
                if is_first && is_odd_mark(&bytes[at + 1..end]) {
                    return refuse("a line that begins with `#` and a number, and has more in it", at..end);
                }
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            b'/' if is_first => return refuse("a line that begins with `/`", at..at + 1),
            b'"' | b'\'' => {
                at = end_of_literal(&bytes, at)?;
                is_first = false;
                continue;
            }
            b'\n' => is_first = true,
            b'\r' if matches!(bytes.get(at + 1), None | Some(b'\n')) => {}
            b' ' | b'\t' => {}
            b'\\' => return refuse("a `\\` outside of a string", at..at + 1),
            b'!'..=b'~' => is_first = false,
            _ => {
                let end = (at + 1..bytes.len()).find(|end| text.is_char_boundary(*end));
                return refuse("such a character outside of a string", at..end.unwrap_or(bytes.len()));
            }
        }
        at += 1;
    }
    if let Some(at) = text.find('\0') {
        return refuse("a character of the value 0", at..at + 1);
    }
    // Comments may hold any characters, and become ASCII as a whole.
    Ok(String::from_utf8(bytes).expect("comments are replaced as a whole"))
}

fn refuse<T>(what: &str, at: std::ops::Range<usize>) -> Result<T, Refused> {
    Err((format!("not supported: {what}"), Span::new(at)))
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

fn length_of_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
}

/// Whether what follows `#` is a number, and then something that does not end with the line for everyone.
fn is_odd_mark(line: &[u8]) -> bool {
    let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    let marks = line.iter().filter(|byte| **byte == b'"').count();
    first.is_some_and(u8::is_ascii_digit)
        && (marks % 2 != 0
            || line.contains(&b';')
            || line.contains(&b'\\')
            || line.contains(&b'\'')
            || line.windows(2).any(|pair| pair == b"/*"))
}

/// The end of a string or of a character that begins at a place.
fn end_of_literal(bytes: &[u8], start: usize) -> Result<usize, Refused> {
    if bytes[start] == b'\'' {
        // Others have meanings of their own: `'"`, `';`, `'\`.
        if !bytes.get(start + 1).is_some_and(u8::is_ascii_alphanumeric) {
            return refuse("such a character", start..start + 1);
        }
        let is_ended = bytes.get(start + 2) == Some(&b'\'');
        return Ok(start + 2 + usize::from(is_ended));
    }
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\n' | b'\r' => break,
            b'\\' if !matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
            _ => at += 1,
        }
    }
    refuse("a string that does not end on its line", start..at.min(bytes.len()))
}

/// The end of a literal in a text that was accepted.
pub(super) fn after_literal(bytes: &[u8], start: usize) -> usize {
    end_of_literal(bytes, start).unwrap_or(bytes.len())
}
