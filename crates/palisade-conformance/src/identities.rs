//! Random programs with identities, as `.pal` text.
//!
//! They contain what identities are for: one cell per process, cells that hold an identity or none, registers that
//! remember an identity, loops over all others that wait, leave or act, and locked instructions. Bodies are short,
//! so that brute force can look at a few processes.

use crate::Random;

/// The text of the program with this seed. With `cyclic`, processes may start again.
pub fn identities(seed: u64, cyclic: bool) -> String {
    let mut random = Random::new(seed);
    let mut text =
        Text { random: &mut random, out: String::new(), left: 0, registers: 0, labels: Vec::new() };
    text.program(cyclic);
    text.out
}

/// A program with this seed that may use identities as more than names: numbers as identities, comparisons of order,
/// loops by hand, atomic blocks with several identities, several processes of another kind, variables that start with
/// any identity, and properties about many processes. What is safe for a few processes may be broken with more.
pub fn wild(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("shared flag[id]: 0..1;\n");
    let start = *random.pick(&["", "", " = *"]);
    text.push_str(&format!(
        "shared turn: id or none{start};\nshared last: id or none{start};\nshared n: 0..3 wrap;\n"
    ));
    if random.percent(15) {
        text.push_str("process Q[*] { fetch_add(n, 1); }\n");
    } else if random.percent(40) {
        let body = *random.pick(&[
            "let c: id or none = *; turn = c; let d: id or none = last; if d == c { n = 1; }",
            "let c: id or none = *; assume(c != none); if flag[c] == 1 { last = c; }",
            "atomic { let c: id or none = turn; let d: id or none = last; if c != d { flag[c] = 0; n = 1; } }",
        ]);
        text.push_str(&format!("process Q {{ {body} }}\n"));
    }
    text.push_str("process P(me: id)[*] {\n");
    let declared = [
        "let a: id or none = turn;",
        "let a: id or none = last;",
        "let a: id or none = *;",
        "let a: id or none = any(0..2);",
    ];
    let first = *random.pick(&declared);
    text.push_str(first);
    text.push('\n');
    let statements = [
        "flag[me] = 1;",
        "turn = me;",
        "last = me;",
        "last = turn;",
        "a = last;",
        "fence;",
        "fetch_add(n, 1);",
        "xchg(turn, me);",
        "a = xchg(last, a);",
        "if a != none && a != me && flag[a] == 1 { n = 1; }",
        "if turn != me { last = turn; }",
        "if turn != last && turn != me && last != me && turn != none && last != none { goto cs; }",
        "if cas(turn, none, me) { last = me; }",
        "if cas(turn, a, me) { n = 2; }",
        "for other in others { await flag[other] == 1; }",
        "for other in others { if flag[other] == 1 { last = other; goto cs; } }",
        "for other in others { if other == a { break; } }",
        "atomic { turn = last; last = me; }",
        "atomic { if turn != none && last != none && turn != last && turn != me && last != me { n = 3; } }",
        "atomic { a = turn; if a != none && a != me && flag[a] == 1 { turn = me; } }",
        "atomic { a = turn; turn = last; last = a; }",
        "assert(me < 4);",
        "assert(turn != 3);",
        "if me == 3 { n = 1; }",
        "if flag[2] == 1 { n = 1; }",
        "{ let o: id or none = 0; while o < 2 { o = o + 1; if o != me { await flag[o] == 0; } } }",
        "assert(n != 3);",
        "assert(a != turn || a == none || a == me);",
    ];
    // The last ones are often broken at once, or outside of what is proved.
    let number = random.between(2, 5);
    let (mut used, mut loops) = (Vec::new(), 0);
    for _ in 0..number {
        let all = if random.percent(70) { 21 } else { statements.len() };
        let statement = statements[random.below(all)];
        let by_hand = statement.contains("let o");
        loops += usize::from(by_hand);
        if by_hand && loops > 1 {
            continue;
        }
        used.push(statement);
    }
    used.iter().for_each(|statement| text.push_str(&format!("{statement}\n")));
    text.push_str("cs: skip;\n}\n");
    let property = *random.pick(&[
        "forbid count(P@cs) >= 2;",
        "forbid count(P@cs) >= 3;",
        "forbid count(P@cs) >= 2 && n == 2;",
        "forbid count(P@cs) >= 1 && turn == none && n == 3;",
        "forbid count(P@cs) >= 1 && turn == last && turn != none;",
        "forbid count(P@cs) >= 4;",
        "forbid n == 3;",
        "forbid turn == 3;",
    ]);
    text.push_str(property);
    text.push('\n');
    text
}

struct Text<'r> {
    random: &'r mut Random,
    out: String,
    /// How many statements are left.
    left: usize,
    registers: usize,
    labels: Vec<&'static str>,
}

impl Text<'_> {
    fn program(&mut self, cyclic: bool) {
        self.out.push_str("shared flag[id]: 0..1;\nshared turn: id or none;\nshared lock: 0..1;\n\n");
        if self.random.percent(25) {
            self.out.push_str("process Other {\n");
            let statement = *self.random.pick(&[
                "lock = 1;",
                "let c: id or none = *; assume(c != none); if flag[c] == 1 { turn = c; }",
                "let c: id or none = *; turn = c; await turn == none; lock = 1;",
                "await turn != none; turn = none;",
            ]);
            self.out.push_str(statement);
            self.out.push_str("\n}\n\n");
        }
        self.out.push_str("process P(me: id)[*] {\n");
        let again = cyclic && self.random.percent(60);
        if again {
            self.out.push_str("again:\n");
        }
        self.left = self.random.between(2, 5);
        while self.left > 0 {
            self.statement(0);
        }
        if self.labels.len() < 2 {
            self.label();
        }
        if again {
            let back = *self.random.pick(&[
                "goto again;",
                "if turn == none { goto again; }",
                "flag[me] = 0;\ngoto again;",
            ]);
            self.out.push_str(back);
        }
        self.out.push_str("\nout: skip;\n}\n\n");
        let (a, b) = (self.labels[0], *self.labels.last().expect("there is a label"));
        let property = match self.random.below(4) {
            0 if a != b => format!("forbid count(P@{a}) >= 1 && count(P@{b}) >= 1;\n"),
            1 => format!("forbid count(P@{b}) >= 3;\n"),
            2 => format!("forbid count(P@{b}) >= 2 && turn == none;\n"),
            _ => format!("forbid count(P@{b}) >= 2;\n"),
        };
        self.out.push_str(&property);
    }

    fn label(&mut self) {
        let label = ["a", "b", "c", "d", "e", "f", "g", "h"][self.labels.len()];
        self.labels.push(label);
        self.out.push_str(&format!("{label}: skip;\n"));
    }

    fn store(&mut self) -> &'static str {
        self.random.pick::<&'static str>(&[
            "flag[me] = 1;",
            "flag[me] = 1;",
            "flag[me] = 0;",
            "turn = me;",
            "turn = me;",
            "turn = none;",
            "lock = 1;",
            "lock = 0;",
            "xchg(turn, me);",
            "xchg(lock, 1);",
            "fence;",
            "fence;",
        ])
    }

    fn condition(&mut self) -> &'static str {
        self.random.pick::<&'static str>(&[
            "turn == me",
            "turn == me",
            "turn != me",
            "turn == none",
            "turn != none",
            "lock == 0",
            "lock == 1",
            "flag[me] == 1",
            "cas(turn, none, me)",
            "cas(lock, 0, 1)",
            "flag[turn] == 1",
        ])
    }

    fn statement(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        if self.labels.len() < 6 && self.random.percent(25) {
            self.label();
        }
        match self.random.below(if depth > 1 { 5 } else { 10 }) {
            0..=3 => {
                let store = self.store();
                self.out.push_str(store);
                self.out.push('\n');
            }
            4 => {
                let what = *self.random.pick(&["turn == me", "turn == none", "lock == 1", "turn != me"]);
                self.out.push_str(&format!("await {what};\n"));
            }
            5 | 6 => {
                let condition = self.condition();
                self.out.push_str(&format!("if {condition} {{\n"));
                self.statement(depth + 1);
                self.out.push_str("}\n");
            }
            7 | 8 => {
                let value = self.random.below(2);
                let body = match self.random.below(6) {
                    0 | 1 => format!("await flag[other] == {value};"),
                    2 => format!("if flag[other] == {value} {{ goto out; }}"),
                    3 => format!("if flag[other] == {value} {{ {} break; }}", self.store()),
                    4 => format!("while flag[other] != {value} {{}}"),
                    _ => format!("if flag[other] == {value} {{ turn = other; goto out; }}"),
                };
                self.out.push_str(&format!("for other in others {{ {body} }}\n"));
            }
            _ => {
                let register = format!("r{}", self.registers);
                self.registers += 1;
                let then = *self.random.pick(&["lock = 1;", "flag[me] = 1;", "fence;"]);
                self.out.push_str(&format!("let {register}: id or none = turn;\n"));
                self.out.push_str(&format!("if {register} != none && {register} != me {{\n"));
                self.out.push_str(&format!("if flag[{register}] == {} {{ {then} }}\n", self.random.below(2)));
                if self.random.percent(40) {
                    self.out.push_str(&format!("if turn == {register} {{ {then} }}\n"));
                }
                self.out.push_str("}\n");
            }
        }
    }
}
