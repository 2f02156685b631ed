//! Which fences does a program need, and is it robust with them?
//!
//! `cargo run -p palisade --example fences`

use palisade::{FencesOptions, Input, Language, Limits, RobustOptions, Source, Verdict, Which};

const STORE_BUFFERING: &str = "\
shared x, y: 0..1;
process P { x = 1; let r = y; }
process Q { y = 1; let r = x; }
final P.r == 1 || Q.r == 1;
";

fn robust(input: &Input) -> Result<bool, Box<dyn std::error::Error>> {
    let answer = palisade::robust(&input.program, &RobustOptions::default(), &Limits::unlimited(1))?;
    Ok(matches!(answer.outcome.verdict, Verdict::Holds))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = Source::new("sb.pal", STORE_BUFFERING);
    let input = palisade::read(source, Language::Pal, None).map_err(|refused| refused.to_string())?;
    println!("robust without fences: {}", robust(&input)?);

    let options = FencesOptions { which: Which::All, ..FencesOptions::default() };
    let answer = palisade::fences(&input, &options, &Limits::unlimited(2))?;
    println!("{} minimal sets of fences", answer.findings.sets.len());
    let fenced = answer.written(&input, 0, &Limits::unlimited(2)).map_err(|error| format!("{error:?}"))?;
    println!("{fenced}");

    let fenced = palisade::read(Source::new("fenced.pal", fenced), Language::Pal, None);
    println!("robust with them: {}", robust(&fenced.map_err(|refused| refused.to_string())?)?);
    Ok(())
}
