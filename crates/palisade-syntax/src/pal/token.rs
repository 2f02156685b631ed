//! The tokens of `.pal`.

use palisade_base::Span;

/// A token and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The kind of token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    /// The end of the text.
    End,
    /// A name that is not a keyword.
    Name(Symbol),
    /// A number of at most 2^63, the largest that can follow a minus sign.
    Number(u64),
    /// A path in quotes, after `import`.
    Path,
    /// A keyword.
    Word(Word),
    /// Anything else.
    Sign(Sign),
}

/// A distinct spelling of a name; see [`super::lexer::Names`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Symbol(pub u32);

/// Defines an enum of fixed texts.
macro_rules! texts {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $name { $($variant,)* }

        impl $name {
            /// All values, in the order of their declaration.
            #[allow(dead_code)]
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// Its text.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

texts! {
    /// Keywords. The last ones belong to other languages. They are reserved so that the parser can explain
    /// them.
    Word {
        Const "const",
        Shared "shared",
        Private "private",
        Process "process",
        Proc "proc",
        Forbid "forbid",
        Final "final",
        Enum "enum",
        Bool "bool",
        Int "int",
        Blocking "blocking",
        Let "let",
        Skip "skip",
        Fence "fence",
        StoreFence "sfence",
        Assume "assume",
        Await "await",
        Assert "assert",
        If "if",
        Else "else",
        While "while",
        Loop "loop",
        Break "break",
        Continue "continue",
        Goto "goto",
        Choose "choose",
        Or "or",
        Atomic "atomic",
        Return "return",
        Spawn "spawn",
        True "true",
        False "false",
        Any "any",
        Cas "cas",
        Exchange "xchg",
        FetchAdd "fetch_add",
        FetchSub "fetch_sub",
        FetchAnd "fetch_and",
        FetchOr "fetch_or",
        FetchXor "fetch_xor",
        For "for",
        Do "do",
        Switch "switch",
        Null "null",
        NullMacro "NULL",
        FullFence "mfence",
        LoadFence "lfence",
    }
}

impl Word {
    /// Whether an item of the program starts with it.
    pub fn starts_item(self) -> bool {
        use Word::{Const, Enum, Final, Forbid, Private, Proc, Process, Shared};
        matches!(self, Const | Enum | Shared | Private | Process | Proc | Forbid | Final)
    }
}

texts! {
    /// Punctuation and operators.
    Sign {
        LeftParen "(",
        RightParen ")",
        LeftBracket "[",
        RightBracket "]",
        LeftBrace "{",
        RightBrace "}",
        Semicolon ";",
        Comma ",",
        Colon ":",
        Dot ".",
        DotDot "..",
        DotDotEqual "..=",
        At "@",
        Arrow "->",
        Equal "=",
        Plus "+",
        Minus "-",
        Star "*",
        Slash "/",
        Percent "%",
        And "&",
        Or "|",
        Caret "^",
        ShiftLeft "<<",
        ShiftRight ">>",
        EqualEqual "==",
        NotEqual "!=",
        Less "<",
        LessEqual "<=",
        Greater ">",
        GreaterEqual ">=",
        AndAnd "&&",
        OrOr "||",
        Not "!",
        Tilde "~",
        PlusPlus "++",
        MinusMinus "--",
        PlusEqual "+=",
        MinusEqual "-=",
        StarEqual "*=",
        SlashEqual "/=",
        PercentEqual "%=",
        AndEqual "&=",
        OrEqual "|=",
        CaretEqual "^=",
        ShiftLeftEqual "<<=",
        ShiftRightEqual ">>=",
        WordPlus "+%",
        WordMinus "-%",
        WordStar "*%",
        WordSlash "/%",
        WordPercent "%%",
        WordShiftLeft "<<%",
        WordShiftRight ">>%",
        WordLess "<%",
        WordLessEqual "<=%",
        Question "?",
        PathSeparator "::",
        FatArrow "=>",
    }
}
