//! Inline assembly. The compiler makes no calls for what it does to memory, so the assembly that the compiler
//! emits is rewritten.
//!
//! Compilers put `#APP` and `#NO_APP` around inline assembly. An instruction in between is treated in one of
//! these ways:
//! - It is left alone if it is known not to touch memory and is not a fence: `pause`, `nop`, jumps,
//!   arithmetic on registers, or nothing at all (a compiler barrier).
//! - It is followed by a call of the runtime's fence if it is `mfence` or a `lock`ed operation on the
//!   thread's own stack pointer, and by a call of the store-store fence if it is `sfence`. `lfence` does
//!   nothing to memory.
//! - It is preceded by a call that reports a locked access if it is `lock …` or `xchg` with memory.
//! - Otherwise it is reported, now and whenever it is executed: the program does something that cannot be
//!   followed. This applies to every instruction that is not listed here, to code that is written as data
//!   (`.byte`), and to Intel syntax.
//!
//! Calls preserve all registers, the flags and the red zone. Their stubs are in `runtime/asm.c`.
//!
//! *Invariant.* A prefix such as `lock` stays with its instruction, whatever separates the two in the text.
//! Nothing is inserted after a prefix.

use std::fmt::Write;

/// What was found in the inline assembly of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rewritten {
    /// The rewritten assembly.
    pub text: String,
    /// How many instructions got a call.
    pub followed: usize,
    /// Instructions that touch memory, or may, and cannot be followed.
    pub unfollowed: Vec<String>,
}

/// Rewrites a compiler's assembly (AT&T syntax, x86-64).
pub fn rewrite(text: &str) -> Rewritten {
    let mut rewriter = Rewriter::default();
    for line in text.lines() {
        match line.trim() {
            "#APP" => {
                rewriter.inside = true;
                rewriter.put(line);
            }
            "#NO_APP" => {
                rewriter.flush_prefix();
                (rewriter.inside, rewriter.is_bare) = (false, false);
                rewriter.put(line);
            }
            code if rewriter.inside => rewriter.line(code),
            _ => rewriter.put(line),
        }
    }
    rewriter.flush_prefix();
    rewriter.done
}

/// Prefixes: they precede an instruction and are not instructions by themselves.
pub(crate) const PREFIXES: &[&str] = &[
    "lock", "rep", "repe", "repne", "repz", "repnz", "data16", "data32", "addr32", "xacquire", "xrelease",
    "bnd", "notrack", "cs", "ds", "es", "fs", "gs", "ss", "rex", "rex64", "rex.w", "rex.W",
];

/// Directives that emit bytes in place. In code, these bytes are instructions that cannot be read from the
/// text.
pub(crate) const DATA: &[&str] = &[
    ".byte", ".2byte", ".4byte", ".8byte", ".word", ".hword", ".short", ".value", ".int", ".long", ".quad",
    ".octa", ".ascii", ".asciz", ".string", ".fill", ".space", ".zero", ".skip", ".incbin", ".include",
    ".insn", ".macro", ".rept", ".irp", ".irpc", ".float", ".single", ".double", ".uleb128", ".sleb128",
    ".dc.b", ".dc.w", ".dc.l",
];

/// How an instruction is treated.
enum Does {
    Nothing,
    Fence,
    StoreFence,
    Locked { operand: String, size: u32 },
    Unknown,
}

#[derive(Default)]
struct Rewriter {
    done: Rewritten,
    inside: bool,
    in_comment: bool,
    /// Prefixes that have not met their instruction yet.
    prefix: String,
    /// A prefix was emitted without its instruction. Nothing may be inserted between the two.
    is_bare: bool,
    /// Whether each section that `.pushsection` left holds data.
    outer: Vec<bool>,
    /// The section holds data. Compilers return to code by themselves after inline assembly.
    in_data: bool,
    /// Whether the section before the last `.section` or similar directive held data, for `.previous`.
    was_in_data: bool,
    is_intel: bool,
}

impl Rewriter {
    fn put(&mut self, line: &str) {
        self.done.text.push_str(line);
        self.done.text.push('\n');
    }

    /// A line of inline assembly: statements separated by semicolons, and comments.
    fn line(&mut self, line: &str) {
        if line.starts_with('#') && !self.in_comment {
            // This includes the compiler's own notes about source lines.
            self.put(line);
            return;
        }
        let mut statement = String::new();
        let mut quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(c) = characters.next() {
            if self.in_comment {
                self.in_comment = !(c == '*' && characters.next_if_eq(&'/').is_some());
                continue;
            }
            match c {
                '\\' if quoted => {
                    statement.push(c);
                    statement.extend(characters.next());
                }
                '"' => {
                    quoted = !quoted;
                    statement.push(c);
                }
                '#' if !quoted => break,
                '/' if !quoted && characters.next_if_eq(&'*').is_some() => {
                    self.in_comment = true;
                    statement.push(' ');
                }
                ';' if !quoted => self.statement(&std::mem::take(&mut statement)),
                _ => statement.push(c),
            }
        }
        self.statement(&statement);
    }

    /// Labels, prefixes, and an instruction or a directive; each may be missing.
    fn statement(&mut self, statement: &str) {
        let mut code = statement.trim();
        while let Some((label, rest)) = label(code) {
            // A jump to this label would skip the prefix, so the two stay apart.
            self.flush_prefix();
            self.put(&format!("{label}:"));
            code = rest;
        }
        while !code.is_empty() {
            let (word, rest) = split(code);
            if !PREFIXES.contains(&word.to_ascii_lowercase().as_str()) {
                break;
            }
            self.prefix.push_str(word);
            self.prefix.push(' ');
            code = rest;
        }
        if code.is_empty() {
            return;
        }
        if code.starts_with('.') {
            self.flush_prefix();
            self.directive(code);
        } else {
            let prefix = std::mem::take(&mut self.prefix);
            self.instruction(&format!("{prefix}{code}"));
        }
    }

    /// Emits a prefix that has no instruction.
    fn flush_prefix(&mut self) {
        let prefix = std::mem::take(&mut self.prefix);
        if !prefix.is_empty() {
            self.unknown(prefix.trim());
            self.is_bare = true;
        }
    }

    fn directive(&mut self, code: &str) {
        let (word, rest) = split(code);
        match word.to_ascii_lowercase().as_str() {
            ".pushsection" => {
                self.outer.push(self.in_data);
                self.in_data = !is_code(rest);
            }
            ".popsection" => self.in_data = self.outer.pop().unwrap_or(false),
            ".section" => self.was_in_data = std::mem::replace(&mut self.in_data, !is_code(rest)),
            ".text" => self.was_in_data = std::mem::replace(&mut self.in_data, false),
            ".data" | ".bss" => self.was_in_data = std::mem::replace(&mut self.in_data, true),
            ".previous" => std::mem::swap(&mut self.in_data, &mut self.was_in_data),
            ".intel_syntax" => self.is_intel = true,
            ".att_syntax" => self.is_intel = false,
            data if DATA.contains(&data) && !self.in_data => {
                self.instruction(code);
                return;
            }
            _ => {}
        }
        self.put(&format!("\t{code}"));
    }

    fn instruction(&mut self, code: &str) {
        if self.in_data || std::mem::take(&mut self.is_bare) {
            self.put(&format!("\t{code}"));
            return;
        }
        let does = if self.is_intel || code.starts_with('.') { Does::Unknown } else { judge(code) };
        match does {
            Does::Nothing => self.put(&format!("\t{code}")),
            Does::Fence => {
                self.done.followed += 1;
                self.put(&format!("\t{code}"));
                call(&mut self.done.text, "palisade_asm_fence", None);
            }
            Does::StoreFence => {
                self.done.followed += 1;
                self.put(&format!("\t{code}"));
                call(&mut self.done.text, "palisade_asm_store_fence", None);
            }
            Does::Locked { operand, size } => {
                self.done.followed += 1;
                call(&mut self.done.text, &format!("palisade_asm_locked{size}"), Some(&operand));
                self.put(&format!("\t{code}"));
            }
            Does::Unknown => self.unknown(code),
        }
    }

    /// Something that cannot be followed. It stays unchanged and is reported when it is reached.
    fn unknown(&mut self, code: &str) {
        self.done.unfollowed.push(code.to_owned());
        if self.is_intel {
            self.put("\t.att_syntax prefix");
        }
        call(&mut self.done.text, "palisade_asm_unknown", None);
        if self.is_intel {
            self.put("\t.intel_syntax noprefix");
        }
        self.put(&format!("\t{code}"));
    }
}

/// A label at the beginning, and the text after it.
pub(crate) fn label(code: &str) -> Option<(&str, &str)> {
    let (label, rest) = code.split_once(':')?;
    let label = label.trim_end();
    let is_name = |c: char| c.is_alphanumeric() || "._$@".contains(c);
    let is_quoted = label.len() > 1 && label.starts_with('"') && label.ends_with('"');
    (is_quoted || !label.is_empty() && label.chars().all(is_name)).then(|| (label, rest.trim_start()))
}

/// Whether a section holds code, by its name.
pub(crate) fn is_code(section: &str) -> bool {
    let name = section.split(',').next().unwrap_or("").trim().trim_matches('"');
    let flags = section.split(',').nth(1).unwrap_or("");
    name == ".text" || name.starts_with(".text.") || flags.contains('x')
}

/// Emits a call that changes nothing: it skips the red zone, and the stub saves everything else. The
/// operand's address is put where the stub looks for it.
pub(crate) fn call(text: &mut String, stub: &str, operand: Option<&str>) {
    let mut put = |line: &str| writeln!(text, "\t{line}").expect("writing to a string");
    match operand {
        Some(operand) => {
            // The address is computed before the stack pointer moves. Two words below the red zone hold the
            // old value of the register and the address.
            put("movq %rax, -144(%rsp)");
            put(&format!("leaq {operand}, %rax"));
            put("movq %rax, -152(%rsp)");
            put("movq -144(%rsp), %rax");
            put("leaq -152(%rsp), %rsp");
            put(&format!("call *{stub}@GOTPCREL(%rip)"));
            put("leaq 152(%rsp), %rsp");
        }
        None => {
            put("leaq -152(%rsp), %rsp");
            put(&format!("call *{stub}@GOTPCREL(%rip)"));
            put("leaq 152(%rsp), %rsp");
        }
    }
}

fn judge(code: &str) -> Does {
    let (mut word, mut rest) = split(code);
    let mut locked = false;
    let mut prefixed = false;
    while PREFIXES.contains(&word.to_ascii_lowercase().as_str()) {
        locked |= word.eq_ignore_ascii_case("lock");
        prefixed |= !word.eq_ignore_ascii_case("lock");
        (word, rest) = split(rest);
    }
    let word = word.to_ascii_lowercase();
    let word = word.as_str();
    let operands = operands(rest);
    if prefixed {
        // `rep; nop` is `pause`, and `rep; ret` is `ret`. The others are string instructions, or access
        // memory in another segment.
        return if matches!(word, "nop" | "ret" | "retq") && !locked { Does::Nothing } else { Does::Unknown };
    }
    match word {
        "mfence" => return Does::Fence,
        "sfence" => return Does::StoreFence,
        _ if FREE.contains(&word) || word.starts_with("prefetch") || is_stem(word, &["lea", "nop"]) => {
            return Does::Nothing;
        }
        _ if is_jump(word) && !locked => {
            // The only thing that could be in memory is the jump target.
            let direct =
                operands.iter().all(|operand| !operand.starts_with('*') || !is_memory(&operand[1..]));
            return if direct { Does::Nothing } else { Does::Unknown };
        }
        _ => {}
    }
    let Some(memory) = operands.iter().find(|operand| is_memory(operand)) else {
        return if is_known(word, &operands) && !locked { Does::Nothing } else { Does::Unknown };
    };
    if !(locked && is_stem(word, LOCKABLE) || is_stem(word, &["xchg"])) {
        return Does::Unknown;
    }
    // A common way to write a fence: add zero to the top of the stack.
    let nothing = operands.first().is_some_and(|operand| matches!(operand.as_str(), "$0" | "$0x0"));
    if nothing
        && is_stem(word, &["add", "or", "sub", "xor"])
        && (memory.ends_with("(%rsp)") || memory.ends_with("(%esp)"))
    {
        return Does::Fence;
    }
    if is_stem(word, &["btc", "btr", "bts"]) && operands.first().is_some_and(|bit| bit.starts_with('%')) {
        // The bit may be far away from the operand.
        return Does::Unknown;
    }
    match size(word, &operands) {
        Some(size) if is_address(memory) => Does::Locked { operand: memory.clone(), size },
        _ => Does::Unknown,
    }
}

/// Instructions, with or without operands, that do nothing to memory that others can see.
const FREE: &[&str] = &[
    "lfence",
    "pause",
    "cpuid",
    "rdtsc",
    "rdtscp",
    "serialize",
    "xgetbv",
    "emms",
    "vzeroupper",
    "vzeroall",
    "ud2",
    "int3",
    "clc",
    "stc",
    "cmc",
    "cld",
    "std",
    "lahf",
    "sahf",
    "cltd",
    "cltq",
    "cqto",
    "cwtl",
    "cbtw",
    "cwtd",
    "cdq",
    "cqo",
    "cdqe",
    "cwde",
    "cbw",
    "cwd",
    "pushf",
    "pushfq",
    "popf",
    "popfq",
    "ret",
    "retq",
    "leave",
    "leaveq",
    "endbr64",
    "endbr32",
    "fninit",
    "fnclex",
    "fwait",
];

/// Instructions that do nothing to memory if no operand is in memory. These are the beginnings of their
/// names; a size suffix may follow.
const STEMS: &[&str] = &[
    "mov", "movabs", "movz", "movzb", "movzw", "movs", "movsb", "movsw", "movsl", "movsx", "movzx", "movsxd",
    "add", "sub", "adc", "sbb", "and", "or", "xor", "not", "neg", "inc", "dec", "cmp", "test", "shl", "shr",
    "sal", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd", "mul", "imul", "div", "idiv", "bsf", "bsr",
    "bswap", "bt", "bts", "btr", "btc", "popcnt", "lzcnt", "tzcnt", "xchg", "xadd", "cmpxchg", "push", "pop",
    "crc32", "pext", "pdep", "andn", "bextr", "blsi", "blsr", "blsmsk", "bzhi", "mulx", "adcx", "adox",
    "rorx", "sarx", "shlx", "shrx", "rdrand", "rdseed", "movbe",
];

/// Instructions that may be locked.
const LOCKABLE: &[&str] = &[
    "add",
    "adc",
    "and",
    "btc",
    "btr",
    "bts",
    "cmpxchg",
    "cmpxchg8b",
    "cmpxchg16b",
    "dec",
    "inc",
    "neg",
    "not",
    "or",
    "sbb",
    "sub",
    "xor",
    "xadd",
    "xchg",
];

/// Whether a word is one of these, with or without a size suffix.
fn is_stem(word: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| {
        word.strip_prefix(stem).is_some_and(|suffix| matches!(suffix, "" | "b" | "w" | "l" | "q"))
    })
}

fn is_jump(word: &str) -> bool {
    // No other names begin this way.
    word.starts_with('j') || word.starts_with("loop")
}

/// Whether an instruction on registers is known to do nothing to memory.
fn is_known(word: &str, operands: &[String]) -> bool {
    if operands.is_empty() {
        // Without written operands, the operands are implicit and unknown here.
        return false;
    }
    let vector = |operand: &String| {
        ["%xmm", "%ymm", "%zmm", "%mm", "%k"].iter().any(|register| operand.starts_with(register))
    };
    is_stem(word, STEMS)
        || word.starts_with("set")
        || word.starts_with("cmov")
        || operands.iter().any(vector) && !word.contains("maskmov")
}

pub(crate) fn split(code: &str) -> (&str, &str) {
    let code = code.trim();
    code.split_once(char::is_whitespace).map_or((code, ""), |(word, rest)| (word, rest.trim()))
}

/// Splits operands at the commas outside parentheses.
pub(crate) fn operands(text: &str) -> Vec<String> {
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

/// Whether an operand is neither a register nor a number. Thread-local storage has a segment prefix, which
/// `lea` would ignore.
pub(crate) fn is_memory(operand: &str) -> bool {
    operand.contains('(') || operand.contains(':') || !(operand.starts_with('%') || operand.starts_with('$'))
}

/// Whether `lea` gives the operand's address: it is an ordinary memory operand without a segment.
fn is_address(operand: &str) -> bool {
    !operand.contains(':') && !operand.starts_with('*') && !operand.starts_with('%')
}

/// How many bytes an instruction accesses, by its suffix or by its other operand.
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
        check("1: lock; decl (%rdi)", 1, 0, "\tlock decl (%rdi)\n");
        check("1:\tlock; 2: decl (%rdi)", 0, 1, "\tlock\n2:\n\tdecl (%rdi)\n");
        check("1: 2: rep; nop; jnz 1b; jmp *%rax", 0, 0, "1:\n2:\n");
        check("lock; lock; incl (%rdi)", 1, 0, "\tlock lock incl (%rdi)\n");
        check("LOCK; /* a; b */ INCL (%rdi) # c; d", 1, 0, "\tLOCK INCL (%rdi)\n");
        check("jmp *(%rax)", 0, 1, "");
        check("call f", 0, 1, "");
        check("pushq (%rdi)", 0, 1, "");
        check("pushq %rdi; popq %rdi", 0, 0, "");
        check("stosb", 0, 1, "");
        check("movsbl %al, %eax; movq %rax, %xmm0; vpaddd %ymm0, %ymm1, %ymm2", 0, 0, "");
        check("maskmovdqu %xmm0, %xmm1", 0, 1, "");
        check("wrfsbase %rax", 0, 1, "");
        check("nonsense %rax", 0, 1, "");
        check("lock btsq %rax, (%rdi)", 0, 1, "");
        check("lock btsl $3, (%rdi)", 1, 0, "palisade_asm_locked4");
        check(".byte 0xf0, 0xff, 0x07", 0, 1, "palisade_asm_unknown");
        check("lock; .byte 0xff, 0x07", 0, 1, "\tlock\n\t.byte");
        check(
            ".pushsection .smp_locks,\"a\"; .long 671f; .popsection; 671: lock; decl (%rdi)",
            1,
            0,
            "671:\n",
        );
        check(".string \"a; mov (%rdi), %rax\"", 0, 1, "");
        check(".intel_syntax noprefix; mov eax, [rdi]; .att_syntax", 0, 1, "\t.att_syntax prefix\n");
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
