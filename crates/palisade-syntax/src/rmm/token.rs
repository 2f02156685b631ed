//! Tokens and their places.

use palisade_base::Span;

/// A place in the text, and the macro call that it came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Here {
    /// The span to show. For an argument of a macro, this is the span of the parameter in the macro's body.
    pub span: Span,
    /// The macro call.
    pub call: CallId,
}

/// A macro call, as an index into [`super::messages::Messages`]; [`CallId::NONE`] for plain text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CallId(pub u32);

impl CallId {
    /// Not from a macro.
    pub const NONE: CallId = CallId(u32::MAX);
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// The span of its text.
    pub text: Span,
    /// The place that it counts as.
    pub here: Here,
}

impl Token {
    /// Its text.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.text.range()).unwrap_or("")
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $words:literal)*) => {
        /// The kinds of tokens.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum TokenKind {
            $($(#[$doc])* $name,)*
        }

        impl TokenKind {
            /// Its description in messages.
            pub fn describe(self) -> &'static str {
                match self { $(TokenKind::$name => $words,)* }
            }
        }
    };
}

kinds! {
    /// A name that is not a keyword.
    Name "a name"
    /// `$r`
    Register "a register"
    Number "a number"
    Assume "`assume`"
    Cas "`cas`"
    Data "`data`"
    Do "`do`"
    Either "`either`"
    Else "`else`"
    EndMacro "`endmacro`"
    False "`false`"
    Fence "`fence`"
    Forbidden "`forbidden`"
    Goto "`goto`"
    If "`if`"
    LoadFence "`llfence`"
    Locked "`locked`"
    Macro "`macro`"
    /// `me` and `other`: reserved, but unused.
    Reserved "a reserved word"
    My "`my`"
    Nop "`nop`"
    Not "`not`"
    Or "`or`"
    Predicates "`predicates`"
    Process "`process`"
    Read "`read`"
    Registers "`registers`"
    StoreLocked "`slocked`"
    StoreFence "`ssfence`"
    SyncRead "`syncrd`"
    SyncWrite "`syncwr`"
    Text "`text`"
    Then "`then`"
    True "`true`"
    While "`while`"
    Write "`write`"
    And "`&&`"
    Assign "`:=`"
    Bar "`||`"
    Colon "`:`"
    Comma "`,`"
    Equal "`=`"
    Greater "`>`"
    GreaterEqual "`>=`"
    LeftBrace "`{`"
    LeftBracket "`[`"
    LeftParen "`(`"
    Less "`<`"
    LessEqual "`<=`"
    Minus "`-`"
    NotEqual "`!=`"
    Plus "`+`"
    RightBrace "`}`"
    RightBracket "`]`"
    RightParen "`)`"
    Semicolon "`;`"
    Star "`*`"
    /// Stands for a macro call that could not be expanded. The error has been reported.
    Broken "a call of a macro"
    /// The end of the text. It is always the last token, and occurs only there.
    End "the end of the file"
}

impl TokenKind {
    /// The kind of a word that starts with a letter or `_`.
    pub fn of_word(word: &str) -> TokenKind {
        match word {
            "assume" => TokenKind::Assume,
            "cas" => TokenKind::Cas,
            "data" => TokenKind::Data,
            "do" => TokenKind::Do,
            "either" => TokenKind::Either,
            "else" => TokenKind::Else,
            "endmacro" => TokenKind::EndMacro,
            "false" => TokenKind::False,
            "fence" => TokenKind::Fence,
            "forbidden" => TokenKind::Forbidden,
            "goto" => TokenKind::Goto,
            "if" => TokenKind::If,
            "llfence" => TokenKind::LoadFence,
            "locked" => TokenKind::Locked,
            "macro" => TokenKind::Macro,
            "me" | "other" => TokenKind::Reserved,
            "my" => TokenKind::My,
            "nop" => TokenKind::Nop,
            "not" => TokenKind::Not,
            "or" => TokenKind::Or,
            "predicates" => TokenKind::Predicates,
            "process" => TokenKind::Process,
            "read" => TokenKind::Read,
            "registers" => TokenKind::Registers,
            "slocked" => TokenKind::StoreLocked,
            "ssfence" => TokenKind::StoreFence,
            "syncrd" => TokenKind::SyncRead,
            "syncwr" => TokenKind::SyncWrite,
            "text" => TokenKind::Text,
            "then" => TokenKind::Then,
            "true" => TokenKind::True,
            "while" => TokenKind::While,
            "write" => TokenKind::Write,
            _ => TokenKind::Name,
        }
    }

    /// The words that a statement can begin with, for suggestions.
    pub const STATEMENT_WORDS: [&'static str; 18] = [
        "assume", "cas", "either", "fence", "goto", "if", "llfence", "locked", "nop", "read", "slocked",
        "ssfence", "syncrd", "syncwr", "while", "write", "else", "or",
    ];
}
