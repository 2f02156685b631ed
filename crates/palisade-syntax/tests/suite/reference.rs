//! The programs in the language reference: each is valid, prints as itself, and states the verdicts it
//! expects.

use palisade_base::Source;
use palisade_program::print::print;
use palisade_syntax::{Language, parse};

/// A fenced block whose info string starts with `pal`.
struct Example {
    line: usize,
    info: &'static str,
    text: String,
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = None;
    for (number, line) in include_str!("../../../../docs/language.md").lines().enumerate() {
        match (line.strip_prefix("```"), inside) {
            (Some(info), None) => {
                let is_program = info.split(' ').next() == Some("pal");
                inside = Some(is_program);
                if is_program {
                    examples.push(Example { line: number + 1, info, text: String::new() });
                }
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => {
                let example = examples.last_mut().expect("pushed at the start of the block");
                example.text += line;
                example.text += "\n";
            }
            _ => {}
        }
    }
    assert_eq!(inside, None, "the last block is closed");
    examples
}

#[test]
fn every_program_is_valid_and_prints_as_itself() {
    let examples = examples();
    assert!(examples.len() >= 20, "the reference has {} programs", examples.len());
    for Example { line, text, .. } in examples {
        let read = |text: &str| match parse(Language::Pal, &Source::new("language.md", text)) {
            Ok(parsed) => {
                assert!(parsed.warnings.is_empty(), "line {line}: {:#?}", parsed.warnings);
                parsed.program
            }
            Err(diagnostics) => panic!("line {line}: {diagnostics:#?}\n{text}"),
        };
        let program = read(&text);
        let printed = print(&program);
        assert_eq!(read(&printed), program, "line {line}");
        assert_eq!(print(&read(&printed)), printed, "line {line}");
    }
}

#[test]
fn expected_verdicts_are_well_formed_and_grow_with_the_models() {
    for Example { line, info, .. } in examples() {
        let mut verdicts = Vec::new();
        for pair in info.split(' ').skip(1) {
            let (model, verdict) = pair.split_once('=').unwrap_or_else(|| panic!("line {line}: {pair}"));
            assert!(["sc", "tso", "pso"].contains(&model), "line {line}: {model}");
            assert!(["safe", "unsafe"].contains(&verdict), "line {line}: {verdict}");
            verdicts.push(verdict);
        }
        assert!(matches!(verdicts.len(), 0 | 3), "line {line}: give verdicts for all models or for none");
        // A violation under one model is a violation under every weaker model: "safe" sorts before "unsafe".
        assert!(verdicts.is_sorted(), "line {line}: {info}");
    }
}
