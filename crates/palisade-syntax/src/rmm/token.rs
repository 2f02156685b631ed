//! Tokens and where they are.

use palisade_base::Span;

/// A place in the text, and the call of a macro that brought it into the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Here {
    /// Where it is shown. For the argument of a macro: the place of the parameter in the macro's text.
    pub span: Span,
    /// Which call of a macro it came from.
    pub call: CallId,
}

/// A call of a macro, as an index into [`super::messages::Messages`]; [`CallId::NONE`] for plain text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CallId(pub u32);

impl CallId {
    /// Not from a macro.
    pub const NONE: CallId = CallId(u32::MAX);
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub kind: Kind,
    /// What was written.
    pub text: Span,
    /// Where it counts as written.
    pub here: Here,
}

impl Token {
    /// What was written.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.text.range()).unwrap_or("")
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $words:literal)*) => {
        /// The kinds of tokens.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// How messages call it.
            pub fn describe(self) -> &'static str {
                match self { $(Kind::$name => $words,)* }
            }
        }
    };
}

kinds! {
    /// A name without a meaning of its own.
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
    /// `me` and `other`: reserved, without a meaning.
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
    /// In place of a macro's call that could not be expanded, which has been reported.
    Broken "a call of a macro"
    /// The end of the text; always the last token, and only there.
    End "the end of the file"
}

impl Kind {
    /// The kind of a word that starts with a letter or `_`.
    pub fn of_word(word: &str) -> Kind {
        match word {
            "assume" => Kind::Assume,
            "cas" => Kind::Cas,
            "data" => Kind::Data,
            "do" => Kind::Do,
            "either" => Kind::Either,
            "else" => Kind::Else,
            "endmacro" => Kind::EndMacro,
            "false" => Kind::False,
            "fence" => Kind::Fence,
            "forbidden" => Kind::Forbidden,
            "goto" => Kind::Goto,
            "if" => Kind::If,
            "llfence" => Kind::LoadFence,
            "locked" => Kind::Locked,
            "macro" => Kind::Macro,
            "me" | "other" => Kind::Reserved,
            "my" => Kind::My,
            "nop" => Kind::Nop,
            "not" => Kind::Not,
            "or" => Kind::Or,
            "predicates" => Kind::Predicates,
            "process" => Kind::Process,
            "read" => Kind::Read,
            "registers" => Kind::Registers,
            "slocked" => Kind::StoreLocked,
            "ssfence" => Kind::StoreFence,
            "syncrd" => Kind::SyncRead,
            "syncwr" => Kind::SyncWrite,
            "text" => Kind::Text,
            "then" => Kind::Then,
            "true" => Kind::True,
            "while" => Kind::While,
            "write" => Kind::Write,
            _ => Kind::Name,
        }
    }

    /// Words a statement can begin with, for suggestions.
    pub const STATEMENT_WORDS: [&'static str; 18] = [
        "assume", "cas", "either", "fence", "goto", "if", "llfence", "locked", "nop", "read", "slocked",
        "ssfence", "syncrd", "syncwr", "while", "write", "else", "or",
    ];
}
