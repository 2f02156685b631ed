//! Random instructions, printed by the library that decodes them.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction, Register};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_x86::{Contents, File, dump};

/// An instruction, as text with everything written.
fn printed(instruction: &Instruction) -> String {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_gas_show_mnemonic_size_suffix(true);
    options.set_rip_relative_addresses(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    // The library shows that there is a part for an index, even if that is none.
    text.replace(",)", ")")
}

/// What the reader makes of an instruction. `None` if it is not read.
fn read_again(text: &str) -> Option<String> {
    let text = format!(" .type f, @function\nf: {text}\n");
    let dumped = dump(&File { name: "text.s", contents: Contents::Assembly(&text) }).ok()?;
    let line = dumped.lines().find(|line| line.starts_with("  0x0 ("));
    line.filter(|_| !dumped.contains("not read"))
        .map(|line| line.split_once(": ").map_or("", |(_, of)| of).to_owned())
}

#[test]
fn random_instructions_are_read_as_they_are_printed() {
    let (mut same, mut unread) = (0, Vec::new());
    for seed in seeds(10) {
        let mut random = Random::new(seed);
        for _ in 0..200 {
            let mut bytes = Vec::new();
            bytes.extend([&[][..], &[0x66], &[0xf0], &[0xf3], &[0xf2], &[]][random.below(6)]);
            if random.below(2) == 0 {
                bytes.push(0x40 + random.below(16) as u8);
            }
            if random.below(3) == 0 {
                bytes.push(0x0f);
            }
            bytes.extend((0..14).map(|_| random.below(256) as u8));
            let instruction = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
            let is_branch = instruction.flow_control() != FlowControl::Next;
            // Prefixes without a meaning are not printed.
            if instruction.is_invalid() || is_branch || instruction.segment_prefix() != Register::None {
                continue;
            }
            let text = printed(&instruction);
            let Some(found) = read_again(&text) else {
                unread.push(format!("{:?}: {text}", instruction.code()));
                continue;
            };
            let expected = expected(&bytes[..instruction.len()]);
            // Two names of one instruction.
            let expected = expected.replace(",)", ")");
            let expected = match expected.strip_prefix("sal") {
                Some(rest) => format!("shl{rest}"),
                None => expected,
            };
            // Which register comes first makes no difference.
            let exchanged = |text: &str| {
                let mut words: Vec<&str> = text.split([' ', ',']).collect();
                words.sort_unstable();
                words.join(" ")
            };
            let equal = match expected.starts_with("xchg") {
                true => exchanged(&found) == exchanged(&expected),
                false => found == expected,
            };
            assert!(equal, "seed {seed}: `{text}` is read as `{found}`, and is `{expected}`");
            same += 1;
        }
    }
    // What is not read is not among what compilers write for integers.
    let wrong: Vec<&String> =
        unread.iter().filter(|text| !ODD.split('|').any(|odd| text.contains(odd))).collect();
    assert!(wrong.is_empty(), "not read: {wrong:#?}");
    assert!(same > unread.len(), "{same} are the same, and {} are not read", unread.len());
}

/// What is not read: the x87 and other floating point, input and output, segments and other special registers, prefixes
/// for transactions, places after the instruction without a label, absolute addresses of 64 bits, hints for what does nothing, and what only systems use.
const ODD: &str = "(%rip)|: f|: cmp|VEX|D3NOW|: enter|%dx|: in|xacquire|xrelease|%cr|%dr|%es|%cs|%ss|%ds|%fs|%gs|movabs|addr32|%eip| 0xFFFFFFFF|Reservednop|Nop|Wait|pushf|popf|pushw $|leavew|gdt|idt|getsec|extrq|insertq|maskmov|blendv|xlat|(%edi)|(%esi)|: out|sha256rnds2";

/// What a dump says about an instruction, from bytes that data puts into the code.
fn expected(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    read_again(&format!(".byte {}", bytes.join(","))).unwrap_or_default()
}
