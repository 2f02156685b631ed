//! Unique names that are valid in the other language.

use palisade_program::running::{Register, RegisterOrigin};
use std::collections::HashSet;

/// The names in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Only these words are taken.
    pub fn reserving(words: &[&str]) -> Names {
        Names { taken: words.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect() }
    }

    /// A new name, as close to the wanted one as possible.
    ///
    /// Names with several letters, all of them capitals, get an underscore: in C such names are often macros
    /// of an included file.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut name: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let capitals = name.chars().filter(char::is_ascii_uppercase).count();
        let shouted = capitals > 1 && !name.chars().any(|c| c.is_ascii_lowercase());
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || c == '_') {
            name.insert(0, 'v');
        }
        if shouted {
            name.push('_');
        }
        if self.taken.contains(&name) {
            let again = (2..).map(|i| format!("{name}_{i}")).find(|name| !self.taken.contains(name));
            name = again.expect("some number gives a free name");
        }
        self.taken.insert(name.clone());
        name
    }
}

/// A name to derive a register's name from.
pub(crate) fn of_register(register: &Register) -> String {
    match register.origin {
        RegisterOrigin::Declared => register.name.clone(),
        RegisterOrigin::Temporary => register.name.replace('%', "t"),
    }
}

/// Keywords of C, and names of its library that are often macros.
pub(crate) const C_WORDS: &str = "\
    auto break case char const continue default do double else enum extern float for goto if inline int long \
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while \
    asm typeof linux unix errno stdin stdout stderr main exit abort assert signal bool true false alarm close read \
    write open time clock rand random abs div index link pause pipe sleep wait yield I EOF NULL";
