//! Texts with random damage: the reader returns a module or errors that point into the text.

use crate::common::{FORMS, OPAQUE, TYPED, try_read};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_llvm::Module;
use palisade_llvm::limits::MAX_ERRORS;

fn check(text: &str) {
    match try_read(text) {
        Ok(module) => use_everything(&module),
        Err(errors) => {
            assert!((1..=MAX_ERRORS + 1).contains(&errors.len()), "{} errors for {text:?}", errors.len());
            for error in &errors {
                assert!(error.is_error() && !error.labels.is_empty(), "{error:?} for {text:?}");
                for label in &error.labels {
                    assert!(text.get(label.span.range()).is_some(), "{error:?} points outside {text:?}");
                }
            }
        }
    }
}

/// Goes through a module: what was accepted can be looked at and printed.
fn use_everything(module: &Module) {
    let mut length = 0;
    for id in module.types.ids() {
        length += module.types.display(id).to_string().len();
        length += module.layouts.size(id).map_or(0, |_| 1);
    }
    for id in module.constants.ids() {
        length += module.display_constant(id).to_string().len();
    }
    for function in module.functions.iter() {
        let Some(body) = &function.body else { continue };
        for block in body.blocks.iter() {
            let (last, others) = block.instructions.split_last().expect("blocks are not empty");
            assert!(last.op.is_terminator() && others.iter().all(|other| !other.op.is_terminator()));
            last.op.for_each_successor(|to| length += body.blocks[to].name.len());
            let places = block.instructions.iter().filter_map(|instruction| instruction.location);
            length += places.map(|place| module.debug.positions(place).len()).sum::<usize>();
        }
        for record in &body.records {
            let variable = module.debug.variable(record.variable);
            let ty = variable.and_then(|variable| variable.ty);
            length += ty.map_or(0, |ty| module.debug.path(ty, 8, Some(8)).len());
        }
    }
    assert!(length > 0);
}

/// Words and signs of the language.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "i32", "i8*", "ptr", "void", "label", "metadata", "[", "]", "{", "}", "(", ")", "<", ">", ",", "=", "*", "!", "...", "x",
    "%0", "%x", "%\"a b\"", "@g", "@0", "!0", "!dbg", "#0", "#dbg_value", "$c", "^0", "5", "-1", "0x10", "1.5", "\"s\"", "c\"s\"", "l:",
    "define", "declare", "global", "constant", "type", "opaque", "attributes", "align", "addrspace", "to", "volatile", "atomic",
    "load", "store", "br", "ret", "call", "asm", "phi", "switch", "getelementptr", "inbounds", "alloca", "fence", "seq_cst",
    "cmpxchg", "atomicrmw", "add", "icmp", "eq", "select", "null", "undef", "zeroinitializer", "blockaddress", "bitcast", "splat",
    "!DILocation", "line:", "scope:", "true", "target", "datalayout", "\n", ";", "\u{0}", "é", "\"", "i1", "i128", "float", "nsw",
];

/// Random damage to a text.
fn damage(text: &str, random: &mut Random) -> String {
    let mut text: Vec<u8> = text.into();
    for _ in 0..random.between(1, 3) {
        if text.is_empty() {
            break;
        }
        let at = random.below(text.len());
        match random.below(7) {
            0 => text.truncate(at),
            1 => text[at] ^= 1 << random.below(8),
            2 => _ = text.remove(at),
            3 => _ = text.splice(at..at, random.pick(PIECES).bytes()),
            4 => {
                let end = (at + random.between(1, 20)).min(text.len());
                text.splice(at..end, random.pick(PIECES).bytes());
            }
            5 => {
                let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
                let (from, to) = (random.below(lines.len()), random.below(lines.len()));
                lines.swap(from, to);
                text = lines.join(&b'\n');
            }
            _ => {
                let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
                let line = random.below(lines.len());
                match random.percent(50) {
                    true => _ = lines.remove(line),
                    false => lines.insert(line, lines[line]),
                }
                text = lines.join(&b'\n');
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn damaged_texts() {
    for seed in seeds(6000) {
        let mut random = Random::new(seed);
        let text = *random.pick(&[TYPED, OPAQUE, FORMS]);
        check(&damage(text, &mut random));
    }
}

#[test]
fn random_words() {
    for seed in seeds(3000).starting_at(100_000) {
        let mut random = Random::new(seed);
        let words: Vec<&str> = (0..random.below(40)).map(|_| *random.pick(PIECES)).collect();
        let soup = words.join(" ");
        check(&soup);
        check(&format!("define void @f(ptr %x) {{\n{soup}\nret void\n}}"));
        check(&format!("@g = global {soup}"));
        check(&format!("!0 = !{{{soup}}}"));
    }
}

/// Every prefix of a text, and every text without one of its lines.
#[test]
fn prefixes_and_gaps() {
    for text in [TYPED, OPAQUE, FORMS] {
        let ends = text.char_indices().map(|(at, _)| at);
        for end in ends.step_by(7) {
            check(&text[..end]);
        }
        let lines: Vec<&str> = text.lines().collect();
        for gap in 0..lines.len() {
            let mut rest = lines.clone();
            rest.remove(gap);
            check(&rest.join("\n"));
        }
    }
}
