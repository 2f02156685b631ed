//! Inline assembly: what it does to memory is invisible to the compiler's calls, so the assembly that the compiler makes is rewritten.
//!
//! Compilers put `#APP` and `#NO_APP` around inline assembly. Within, an instruction is
//! - left alone if it does not touch memory and is no fence (`pause`, `nop`, arithmetic on registers, or nothing at all: a compiler barrier);
//! - followed by a call of the runtime's fence if it is `mfence` or a `lock`ed operation on the own stack pointer, and of its store-store fence if it is `sfence`; `lfence` does nothing to memory;
//! - preceded by a call that tells a locked access if it is `lock …` or `xchg` with memory;
//! - otherwise told about, now and whenever it is executed: the program does something that cannot be followed.
//!
//! Calls keep all registers and flags and the red zone; their stubs are in `runtime/asm.c`.

use std::fmt::Write;

/// What was found in the inline assembly of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rewritten {
    /// The assembly as it is from now on.
    pub text: String,
    /// How many instructions got a call.
    pub followed: usize,
    /// Instructions that touch memory and cannot be followed.
    pub unfollowed: Vec<String>,
}

/// Rewrites assembly of a compiler (AT&T syntax, x86-64).
pub fn rewrite(text: &str) -> Rewritten {
    let mut rewritten = Rewritten::default();
    let mut inside = false;
    let mut prefix = String::new();
    for line in text.lines() {
        match line.trim() {
            "#APP" => inside = true,
            "#NO_APP" => inside = false,
            code if inside => {
                for statement in code.split(';') {
                    // A prefix may be written like a statement of its own.
                    let bare = statement.split('#').next().unwrap_or("").trim();
                    if PREFIXES.contains(&bare) {
                        prefix = format!("{bare} ");
                    } else if !bare.is_empty() {
                        instruction(&format!("{prefix}{}", statement.trim()), &mut rewritten);
                        prefix.clear();
                    }
                }
                continue;
            }
            _ => {}
        }
        rewritten.text.push_str(line);
        rewritten.text.push('\n');
    }
    rewritten
}

/// What stands in front of an instruction and is no instruction by itself.
const PREFIXES: &[&str] = &["lock", "rep", "repe", "repne", "repz", "repnz"];

/// What an instruction is to us.
enum Does {
    Nothing,
    Fence,
    StoreFence,
    Locked { operand: String, size: u32 },
    Unknown,
}

fn instruction(statement: &str, rewritten: &mut Rewritten) {
    let code = statement.split('#').next().unwrap_or("").trim();
    let put = |text: &mut String, line: &str| writeln!(text, "\t{line}").expect("writing to a string");
    // A label and perhaps something behind it.
    if let Some((label, rest)) = code.split_once(':')
        && !label.is_empty()
        && label.chars().all(|c| c.is_ascii_alphanumeric() || "._$".contains(c))
    {
        rewritten.text.push_str(&format!("{label}:\n"));
        instruction(rest, rewritten);
        return;
    }
    match judge(code) {
        Does::Nothing => put(&mut rewritten.text, statement.trim()),
        Does::Fence => {
            rewritten.followed += 1;
            put(&mut rewritten.text, statement.trim());
            call(&mut rewritten.text, "palisade_asm_fence", None);
        }
        Does::StoreFence => {
            rewritten.followed += 1;
            put(&mut rewritten.text, statement.trim());
            call(&mut rewritten.text, "palisade_asm_store_fence", None);
        }
        Does::Locked { operand, size } => {
            rewritten.followed += 1;
            call(&mut rewritten.text, &format!("palisade_asm_locked{size}"), Some(&operand));
            put(&mut rewritten.text, statement.trim());
        }
        Does::Unknown => {
            rewritten.unfollowed.push(code.to_owned());
            call(&mut rewritten.text, "palisade_asm_unknown", None);
            put(&mut rewritten.text, statement.trim());
        }
    }
}

/// A call that changes nothing: the red zone is jumped over, and the stub saves everything else. An operand's address is put where the stub looks for it.
fn call(text: &mut String, stub: &str, operand: Option<&str>) {
    let mut put = |line: &str| writeln!(text, "\t{line}").expect("writing to a string");
    match operand {
        Some(operand) => {
            // The address is computed before the stack pointer moves. Two words below the red zone: the old value of the register, and the address.
            put("movq %rax, -144(%rsp)");
            put(&format!("leaq {operand}, %rax"));
            put("movq %rax, -152(%rsp)");
            put("movq -144(%rsp), %rax");
            put("leaq -152(%rsp), %rsp");
            put(&format!("call {stub}@PLT"));
            put("leaq 152(%rsp), %rsp");
        }
        None => {
            put("leaq -152(%rsp), %rsp");
            put(&format!("call {stub}@PLT"));
            put("leaq 152(%rsp), %rsp");
        }
    }
}

fn judge(code: &str) -> Does {
    if code.is_empty() || code.starts_with('.') {
        return Does::Nothing;
    }
    let (mut word, mut rest) = split(code);
    let locked = word == "lock";
    if locked {
        (word, rest) = split(rest);
    }
    if PREFIXES.contains(&word) {
        // `rep; nop` is `pause`; all others are string instructions.
        return if matches!(split(rest).0, "nop" | "ret" | "") { Does::Nothing } else { Does::Unknown };
    }
    match word {
        "mfence" => return Does::Fence,
        "sfence" => return Does::StoreFence,
        "lfence" | "pause" | "nop" | "cpuid" | "rdtsc" | "rdtscp" | "serialize" => return Does::Nothing,
        _ if word.starts_with("prefetch") || word.starts_with("lea") || word.starts_with("nop") => {
            return Does::Nothing;
        }
        _ if word.starts_with("movs") && rest.is_empty()
            || word.starts_with("stos")
            || word.starts_with("call") =>
        {
            return Does::Unknown;
        }
        "syscall" | "int" | "push" | "pushq" | "pushfq" | "pop" | "popq" | "popfq" => {
            return if word == "syscall" || word == "int" { Does::Unknown } else { Does::Nothing };
        }
        _ => {}
    }
    let operands = operands(rest);
    let Some(memory) = operands.iter().find(|operand| is_memory(operand)) else { return Does::Nothing };
    if !locked && !word.starts_with("xchg") {
        return Does::Unknown;
    }
    // The usual way to write a fence: to add nothing to the top of the stack.
    let nothing = operands.first().is_some_and(|operand| matches!(operand.as_str(), "$0" | "$0x0"));
    if nothing && (memory.ends_with("(%rsp)") || memory.ends_with("(%esp)")) {
        return Does::Fence;
    }
    match size(word, &operands) {
        Some(size) if !memory.starts_with('%') => Does::Locked { operand: memory.clone(), size },
        _ => Does::Unknown,
    }
}

fn split(code: &str) -> (&str, &str) {
    let code = code.trim();
    code.split_once(char::is_whitespace).map_or((code, ""), |(word, rest)| (word, rest.trim()))
}

/// Operands are separated by commas outside of parentheses.
fn operands(text: &str) -> Vec<String> {
    let mut operands = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(String::new());
                continue;
            }
            _ => {}
        }
        operands.last_mut().expect("there is one").push(c);
    }
    operands
        .into_iter()
        .map(|operand| operand.trim().to_owned())
        .filter(|operand| !operand.is_empty())
        .collect()
}

/// Neither a register nor a number. Thread-local storage has a segment in front, which `lea` would not heed.
fn is_memory(operand: &str) -> bool {
    operand.contains('(') || operand.contains(':') || !(operand.starts_with('%') || operand.starts_with('$'))
}

/// How many bytes an instruction accesses: by its suffix, or by its other operand.
fn size(word: &str, operands: &[String]) -> Option<u32> {
    if word == "cmpxchg16b" {
        return Some(16);
    }
    if word == "cmpxchg8b" {
        return Some(8);
    }
    let register = operands.iter().find(|operand| operand.starts_with('%') && !operand.contains(':'));
    if let Some(register) = register {
        return Some(register_size(register.trim_start_matches('%')));
    }
    match word.chars().last()? {
        'b' => Some(1),
        'w' => Some(2),
        'l' => Some(4),
        'q' => Some(8),
        _ => None,
    }
}

fn register_size(register: &str) -> u32 {
    let numbered =
        register.strip_prefix('r').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match register.chars().last() {
        Some('d') if numbered => 4,
        Some('w') if numbered => 2,
        Some('b') if numbered => 1,
        _ if numbered || register.starts_with('r') => 8,
        _ if register.starts_with('e') => 4,
        Some('l' | 'h') => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Rewritten {
        rewrite(&format!("f:\n#APP\n# 3 \"a.c\" 1\n\t{code}\n# 0 \"\" 2\n#NO_APP\n\tret\n"))
    }

    #[test]
    fn judgements() {
        let check = |code: &str, followed: usize, unfollowed: usize, call: &str| {
            let rewritten = of(code);
            assert_eq!((rewritten.followed, rewritten.unfollowed.len()), (followed, unfollowed), "{code}");
            assert!(call.is_empty() || rewritten.text.contains(call), "{code}: {}", rewritten.text);
        };
        check("", 0, 0, "");
        check("mfence", 1, 0, "palisade_asm_fence");
        check("sfence", 1, 0, "palisade_asm_store_fence");
        check("lfence; pause", 0, 0, "");
        check("rep; nop", 0, 0, "");
        check("lock; addl $0, (%rsp)", 1, 0, "palisade_asm_fence");
        check("lock xaddl %eax, 8(%rdi,%rcx,4)", 1, 0, "palisade_asm_locked4");
        check("lock; incq x(%rip)", 1, 0, "palisade_asm_locked8");
        check("lock cmpxchg %r8b, (%rdi)", 1, 0, "palisade_asm_locked1");
        check("lock cmpxchg16b (%rsi)", 1, 0, "palisade_asm_locked16");
        check("xchgl %eax, (%rdi)", 1, 0, "palisade_asm_locked4");
        check("xchgl %eax, %ebx", 0, 0, "");
        check("movl $1, (%rdi)", 0, 1, "");
        check("1: lock decl (%rdi)", 1, 0, "1:\n");
        check("lock\n\tincl x(%rip)", 1, 0, "lock incl x(%rip)");
        check("addl %eax, %ebx", 0, 0, "");
        check("rep stosb", 0, 1, "");
        check("lock incl %fs:x@tpoff", 0, 1, "");
        check("syscall", 0, 1, "");
    }

    #[test]
    fn what_is_outside_stays() {
        let text = "f:\n\tmovl $1, x(%rip)\n\tmfence\n\tret\n";
        assert_eq!(rewrite(text), Rewritten { text: text.into(), ..Rewritten::default() });
    }
}
