//! Random programs with loops, structs, arrays of arrays, private arrays, enumerations, domains that wrap and quantifiers,
//! and the same programs written out by hand, without any of these.
//!
//! Both texts are made side by side. The second one chooses among plain variables with `if`, unrolls loops, and
//! computes remainders, so it shares nothing with what the parser makes of the first one.

use crate::random::Random;

/// A statement in both forms.
struct Both {
    short: String,
    long: String,
}

/// An index: as it is written, and as it is when the loop is unrolled.
#[derive(Clone)]
struct Index {
    short: String,
    long: String,
}

struct Maker {
    random: Random,
    fresh: u32,
    /// Whether the body is that of a process with the parameter `i`.
    has_parameter: bool,
}

impl Maker {
    /// An index from 0 to 1.
    fn index(&mut self, around: Option<u32>) -> Index {
        let plain = |text: &str| Index { short: text.to_owned(), long: text.to_owned() };
        match (self.random.below(5), around) {
            (0, _) => plain("0"),
            (1, _) => plain("1"),
            (2, Some(value)) => Index { short: "j".to_owned(), long: value.to_string() },
            (3, _) if self.has_parameter => plain("i"),
            (4, _) if self.has_parameter => plain("(1 - i)"),
            _ => plain("k"),
        }
    }

    /// An index of a shared array, which may be out of bounds.
    fn first(&mut self, around: Option<u32>) -> Index {
        if self.random.percent(15) {
            return Index { short: "(k + 1)".to_owned(), long: "(k + 1)".to_owned() };
        }
        self.index(around)
    }

    fn value(&mut self) -> String {
        self.random.pick(&["0", "1", "2", "v"]).to_string()
    }

    /// A cell as it is written, and the cells to choose from, each with its condition.
    fn cell(&mut self, around: Option<u32>) -> (String, Vec<(String, String)>) {
        let kind = self.random.below(4);
        // Indices of private arrays are in range.
        let (a, b) = (self.first(around), if kind < 2 { self.first(around) } else { self.index(around) });
        let (row, column) = (&a.long, &b.long);
        let both = |name: &str| {
            let mut cells = Vec::new();
            for r in 0..2 {
                for c in 0..2 {
                    cells.push((format!("{row} == {r} && {column} == {c}"), format!("{name}_{r}_{c}")));
                }
            }
            cells
        };
        match kind {
            0 => (format!("m[{}][{}]", a.short, b.short), both("m")),
            1 => (format!("s[{}].b[{}]", a.short, b.short), both("s_b")),
            2 => {
                let cells = (0..2).map(|r| (format!("{row} == {r}"), format!("s_a_{r}")));
                (format!("s[{}].a", a.short), cells.collect())
            }
            _ => {
                let cells = (0..2).map(|c| (format!("{column} == {c}"), format!("p_{c}")));
                (format!("p[{}]", b.short), cells.collect())
            }
        }
    }

    /// A choice among cells.
    fn choose(cells: &[(String, String)], action: impl Fn(&str) -> String) -> String {
        let choices =
            cells.iter().map(|(condition, cell)| format!("if {condition} {{ {} }} else ", action(cell)));
        choices.collect::<String>() + "{ assert(false); }"
    }

    fn statement(&mut self, around: Option<u32>, depth: u32) -> Both {
        let (short, cells) = self.cell(around);
        match self.random.below(if depth > 0 { 8 } else { 6 }) {
            0 | 1 => {
                let value = self.value();
                let long = Self::choose(&cells, |cell| format!("{cell} = {value};"));
                Both { short: format!("{short} = {value};"), long }
            }
            2 => Both {
                long: Self::choose(&cells, |cell| format!("v = {cell};")),
                short: format!("v = {short};"),
            },
            3 => {
                let long = Self::choose(&cells, |cell| format!("k = {cell} % 2;"));
                Both { short: format!("k = {short} % 2;"), long }
            }
            4 if !short.starts_with('p') => {
                let long = Self::choose(&cells, |cell| format!("if cas({cell}, 0, 2) {{ v = 1; }}"));
                Both { short: format!("if cas({short}, 0, 2) {{ v = 1; }}"), long }
            }
            4 => Both { short: "u = u + 3;".to_owned(), long: "u = (u + 3) % 4;".to_owned() },
            5 => Both { short: "fence;".to_owned(), long: "fence;".to_owned() },
            6 if around.is_none() => {
                self.fresh += 1;
                // The same random choices for every value of the loop variable.
                let (seed, fresh) = (self.random.next_word(), self.fresh);
                let unrolled: Vec<Both> = (0..2)
                    .map(|value| {
                        self.random = Random::new(seed);
                        self.fresh = fresh;
                        self.statement(Some(value), 0)
                    })
                    .collect();
                let long: String =
                    unrolled.iter().map(|both| both.long.as_str()).collect::<Vec<_>>().join(" ");
                Both { short: format!("for j in 0..1 {{ {} }}", unrolled[0].short), long }
            }
            _ => {
                let inner = self.statement(around, 0);
                self.fresh += 1;
                let long = Self::choose(&cells, |cell| format!("t{} = {cell};", self.fresh));
                Both {
                    short: format!("if {short} == 1 {{ {} }}", inner.short),
                    long: format!("let t{0}: 0..2; {long} if t{0} == 1 {{ {1} }}", self.fresh, inner.long),
                }
            }
        }
    }

    fn body(&mut self, count: usize) -> Both {
        let statements: Vec<Both> = (0..count).map(|_| self.statement(None, 1)).collect();
        let start = "let k: 0..1; let v: 0..2;";
        let join = |text: fn(&Both) -> &str| statements.iter().map(text).collect::<Vec<_>>().join("\n    ");
        Both {
            short: format!("{start}\n    {}", join(|both| &both.short)),
            long: format!("{start}\n    {}", join(|both| &both.long)),
        }
    }
}

/// The text of a program with all these constructs, and of the same program without them.
pub fn with_and_without_constructs(seed: u64) -> (String, String) {
    let mut maker = Maker { random: Random::new(seed), fresh: 0, has_parameter: true };
    let p = maker.body(3);
    maker.has_parameter = false;
    let q = maker.body(2);
    let (r, c, bad) = (maker.random.below(2), maker.random.below(2), 1 + maker.random.below(2));
    // Some properties are easily violated.
    let (also, more) = (maker.random.percent(30), maker.random.percent(30));
    let two = if also { format!(" && s[{c}].a == Two") } else { String::new() };
    let two_cells = if also { format!(" && s_a_{c} == 2") } else { String::new() };
    let counter = if more { " && u == 2" } else { "" };
    let short = format!(
        "enum Three {{ Zero, One, Two }}\nstruct S {{ a: Three, b[2]: 0..2 }}\nshared m[2][2]: 0..2;\n\
         shared s[2]: S;\nshared u: 0..3 wrap;\nprivate p[2]: Three;\nprocess P(i: 0..1) {{\n    {}\n}}\n\
         process Q {{\n    {}\n}}\nforbid m[{r}][{c}] == {bad}{two};\n\
         final !(exists x in 0..1, y in 0..1: s[x].b[y] == {bad} && m[y][x] != One{counter});\n",
        p.short, q.short
    );
    let cells = |name: &str| {
        let each = ["0_0", "0_1", "1_0", "1_1"].map(|index| format!("{name}_{index}"));
        format!("shared {}: 0..2;\n", each.join(", "))
    };
    let some: Vec<String> = (0..2)
        .flat_map(|x| (0..2).map(move |y| format!("s_b_{x}_{y} == {bad} && m_{y}_{x} != 1{counter}")))
        .collect();
    let long = format!(
        "{}{}shared s_a_0, s_a_1: 0..2;\nshared u: 0..3;\nprivate p_0, p_1: 0..2;\nprocess P(i: 0..1) {{\n    {}\n}}\n\
         process Q {{\n    {}\n}}\nforbid m_{r}_{c} == {bad}{two_cells};\nfinal !({});\n",
        cells("m"),
        cells("s_b"),
        p.long,
        q.long,
        some.join(" || ")
    );
    (short, long)
}
