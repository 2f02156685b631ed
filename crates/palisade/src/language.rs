//! What programs are written in.

use palisade_syntax::Language;
use std::fmt;

/// What a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InputLanguage {
    /// A language that is parsed.
    Text(Language),
    /// C, which is compiled to LLVM IR first.
    C,
    /// LLVM IR as text.
    Llvm,
    /// Rust, which is compiled to LLVM IR first.
    Rust,
    /// An object file for x86-64.
    Object,
    /// Assembly for x86-64, which is assembled first.
    Assembly,
}

impl InputLanguage {
    /// All languages.
    pub fn all() -> impl Iterator<Item = InputLanguage> {
        Language::ALL.into_iter().map(InputLanguage::Text).chain([
            InputLanguage::C,
            InputLanguage::Llvm,
            InputLanguage::Rust,
            InputLanguage::Object,
            InputLanguage::Assembly,
        ])
    }

    /// The name, as in `--input pal`.
    pub fn name(self) -> &'static str {
        match self {
            InputLanguage::Text(language) => language.name(),
            InputLanguage::C => "c",
            InputLanguage::Llvm => "llvm",
            InputLanguage::Rust => "rust",
            InputLanguage::Object => "object",
            InputLanguage::Assembly => "assembly",
        }
    }

    /// The language with that name.
    pub fn from_name(name: &str) -> Option<InputLanguage> {
        InputLanguage::all().find(|language| language.name() == name)
    }

    /// The language of files with that extension (without the dot), in any case: `.PAL` is `.pal`. But `.C` is C++, and `.S`
    /// is assembly for the preprocessor.
    pub fn from_extension(extension: &str) -> Option<InputLanguage> {
        let lower = extension.to_ascii_lowercase();
        match if matches!(extension, "C" | "S") { extension } else { &lower } {
            "c" => Some(InputLanguage::C),
            "ll" => Some(InputLanguage::Llvm),
            "rs" => Some(InputLanguage::Rust),
            "o" => Some(InputLanguage::Object),
            "s" => Some(InputLanguage::Assembly),
            other => Language::from_extension(other).map(InputLanguage::Text),
        }
    }

    /// The usual extension (without the dot).
    pub fn extension(self) -> &'static str {
        match self {
            InputLanguage::Llvm => "ll",
            InputLanguage::Rust => "rs",
            InputLanguage::Object => "o",
            InputLanguage::Assembly => "s",
            other => other.name(),
        }
    }

    /// The language, if it is one that is parsed.
    pub fn text(self) -> Option<Language> {
        match self {
            InputLanguage::Text(language) => Some(language),
            InputLanguage::C
            | InputLanguage::Llvm
            | InputLanguage::Rust
            | InputLanguage::Object
            | InputLanguage::Assembly => None,
        }
    }

    /// Whether the program is machine code.
    pub fn is_machine_code(self) -> bool {
        matches!(self, InputLanguage::Object | InputLanguage::Assembly)
    }
}

impl From<Language> for InputLanguage {
    fn from(language: Language) -> InputLanguage {
        InputLanguage::Text(language)
    }
}

impl PartialEq<Language> for InputLanguage {
    fn eq(&self, other: &Language) -> bool {
        *self == InputLanguage::Text(*other)
    }
}

impl fmt::Display for InputLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
