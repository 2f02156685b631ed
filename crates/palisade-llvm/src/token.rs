//! Tokens of textual LLVM IR.

use std::borrow::Cow;
use std::fmt;

/// A token. Names and strings are as written, with their escapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'a> {
    /// A keyword: an opcode, a type, an attribute.
    Word(&'a str),
    /// `name:`, `5:` or `"a name":`. Fields of metadata look the same.
    Label(Name<'a>),
    /// `%name`
    Local(Name<'a>),
    /// `@name`
    Global(Name<'a>),
    /// `$name`
    Comdat(Name<'a>),
    /// `!name`
    MetadataName(&'a str),
    /// `!5`
    MetadataNode(u32),
    /// `#5`
    AttributeGroup(u32),
    /// `#dbg_declare`
    Record(&'a str),
    /// `^5`, an entry of a summary
    Summary(u32),
    /// `12`, `-3`, `u0xFF`
    Integer(&'a str),
    /// `1.5e3`, `0x3FF0000000000000`
    Float(&'a str),
    /// `"text"`
    Text(&'a str),
    /// `c"bytes"`
    Bytes(&'a str),
    /// A sign of one character.
    Sign(u8),
    /// `...`
    Ellipsis,
    /// The end of the text.
    End,
    /// A string without an end.
    OpenText,
    /// A number that is too large for what it numbers.
    LargeNumber(&'a str),
    /// Anything else.
    Unknown(char),
}

/// A name as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name<'a> {
    /// What has no name has a number.
    Number(u32),
    /// A plain name.
    Plain(&'a str),
    /// A name in quotes, with escapes.
    Quoted(&'a str),
}

impl<'a> Name<'a> {
    /// The name without escapes; a number as a text. `None` if it is not UTF-8.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Name::Number(number) => Some(number.to_string().into()),
            Name::Plain(name) => Some(name.into()),
            Name::Quoted(raw) => unescape_text(raw),
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Number(number) => write!(f, "{number}"),
            Name::Plain(name) => f.write_str(name),
            Name::Quoted(raw) => write!(f, "\"{raw}\""),
        }
    }
}

/// The bytes of a string: `\22` is a byte in hexadecimal, `\\` a backslash. Any other backslash stands for
/// itself.
pub(crate) fn unescape(raw: &str) -> Cow<'_, [u8]> {
    let raw = raw.as_bytes();
    if !raw.contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    let digit =
        |at: usize| raw.get(at).and_then(|&byte| (byte as char).to_digit(16)).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let (byte, length) = match (byte, raw.get(at + 1), digit(at + 1), digit(at + 2)) {
            (b'\\', Some(b'\\'), ..) => (b'\\', 2),
            (b'\\', _, Some(high), Some(low)) => (high * 16 + low, 3),
            _ => (byte, 1),
        };
        bytes.push(byte);
        at += length;
    }
    Cow::Owned(bytes)
}

/// The text of a string without escapes. `None` if it is not UTF-8.
pub(crate) fn unescape_text(raw: &str) -> Option<Cow<'_, str>> {
    match unescape(raw) {
        Cow::Borrowed(_) => Some(Cow::Borrowed(raw)),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

impl fmt::Display for Token<'_> {
    /// The token in an error message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Label(name) => write!(f, "`{name}:`"),
            Token::Local(name) => write!(f, "`%{name}`"),
            Token::Global(name) => write!(f, "`@{name}`"),
            Token::Comdat(name) => write!(f, "`${name}`"),
            Token::MetadataName(name) => write!(f, "`!{name}`"),
            Token::MetadataNode(number) => write!(f, "`!{number}`"),
            Token::AttributeGroup(number) => write!(f, "`#{number}`"),
            Token::Record(name) => write!(f, "`#{name}`"),
            Token::Summary(number) => write!(f, "`^{number}`"),
            Token::Integer(text) | Token::Float(text) | Token::LargeNumber(text) => {
                write!(f, "`{}`", shorten(text))
            }
            Token::Text(_) => f.write_str("a string"),
            Token::Bytes(_) => f.write_str("a string of bytes"),
            Token::Sign(sign) => write!(f, "`{}`", *sign as char),
            Token::Ellipsis => f.write_str("`...`"),
            Token::End => f.write_str("the end of the text"),
            Token::OpenText => f.write_str("a string without an end"),
            Token::Unknown(character) => write!(f, "`{}`", character.escape_default()),
        }
    }
}

/// The start of a long text.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}
