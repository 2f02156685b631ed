//! Programs of the corpus, from the library.

use anyhow::{Context, Result, anyhow};
use palisade::{Input, Language, Source};

/// A program of the corpus, by its file name.
pub fn read(file: &str) -> Result<Input> {
    let text = palisade_corpus::text(file).with_context(|| format!("the corpus has no {file}"))?;
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let language = Language::from_extension(extension).context("a known language")?;
    palisade::read(Source::new(file, text), language, None).map_err(|refused| anyhow!("{refused}"))
}
