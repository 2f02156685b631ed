//! The one interface of everything that can be reported.

use crate::visible;
use palisade_engine::Verdict;

/// How much to show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Detail {
    /// The verdict only.
    Quiet,
    /// The verdict and the steps that matter.
    Normal,
    /// Everything.
    Verbose,
}

/// Whether to colour text for a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Colour {
    /// Plain text.
    #[default]
    Never,
    /// With escape sequences.
    Always,
}

impl Colour {
    /// The text in the style of an escape sequence such as `1;31`.
    pub(crate) fn paint(self, style: &str, text: &str) -> String {
        match self {
            Colour::Never => text.to_owned(),
            Colour::Always => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
        }
    }
}

/// How text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// How much to show.
    pub detail: Detail,
    /// Columns; see [`crate::UNLIMITED`].
    pub width: usize,
    /// Colour.
    pub colour: Colour,
}

/// Whether a verdict is good news.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// The property in question holds.
    Good,
    /// It does not.
    Bad,
    /// Not known.
    Open,
}

impl From<&Verdict> for Standing {
    fn from(verdict: &Verdict) -> Standing {
        match verdict {
            Verdict::Holds => Standing::Good,
            Verdict::Violated(_) => Standing::Bad,
            Verdict::Unknown(_) => Standing::Open,
        }
    }
}

impl Standing {
    /// A word in the colour of the verdict.
    pub(crate) fn painted(self, word: &str, colour: Colour) -> String {
        colour.paint(self.style(), word)
    }

    fn style(self) -> &'static str {
        match self {
            Standing::Good => "1;32",
            Standing::Bad => "1;31",
            Standing::Open => "1;33",
        }
    }
}

/// A result that can be reported.
pub trait Report {
    /// The file or program, as the user named it.
    fn subject(&self) -> &str;

    /// The verdict in one word.
    fn word(&self) -> &str;

    /// Whether the verdict is good news.
    fn standing(&self) -> Standing;

    /// What is bad, why it is unknown, or what a good verdict is limited to.
    fn why(&self) -> Option<String>;

    /// The text after the headline, with the line breaks around it.
    fn body(&self, layout: &Layout) -> String;

    /// Everything as a line of JSON, without the line break.
    fn json(&self) -> String;

    /// The line that scripts read: verdict, subject, and why. Without a line break.
    fn headline(&self, colour: Colour) -> String {
        let why = self.why().map_or_else(String::new, |why| format!(": {why}"));
        format!("{}  {}{why}", colour.paint(self.standing().style(), self.word()), visible(self.subject()))
    }

    /// The headline, and the rest unless only the verdict is wanted.
    fn text(&self, layout: &Layout) -> String {
        let headline = self.headline(layout.colour) + "\n";
        match layout.detail {
            Detail::Quiet => headline,
            Detail::Normal | Detail::Verbose => headline + &self.body(layout),
        }
    }
}
