//! Random programs with loops, structs, arrays of arrays, private arrays, enumerations, wrapping domains and quantifiers mean
//! the same as the programs written out by hand, without any of these.
//!
//! Both texts are made side by side. The second one chooses among plain variables with `if`, unrolls loops, and
//! computes remainders, so it shares nothing with what the parser makes of the first one.

use palisade::{CheckOptions, Language, Limits, Model, Source};
use palisade_conformance::{Random, seeds};
use palisade_program::print::print;

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

    /// A first index of a shared array, which may be out of bounds.
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
        let (a, b) = (self.first(around), self.index(around));
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
        match self.random.below(4) {
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

fn pair(seed: u64) -> (String, String) {
    let mut maker = Maker { random: Random::new(seed), fresh: 0, has_parameter: true };
    let p = maker.body(3);
    maker.has_parameter = false;
    let q = maker.body(2);
    let (r, c, bad) = (maker.random.below(2), maker.random.below(2), maker.random.below(3));
    let short = format!(
        "enum Three {{ Zero, One, Two }}\nstruct S {{ a: Three, b[2]: 0..2 }}\nshared m[2][2]: 0..2;\n\
         shared s[2]: S;\nshared u: 0..3 wrap;\nprivate p[2]: Three;\nprocess P(i: 0..1) {{\n    {}\n}}\n\
         process Q {{\n    {}\n}}\nforbid m[{r}][{c}] == {bad} && s[{c}].a == Two;\n\
         final !(exists x in 0..1, y in 0..1: s[x].b[y] == {bad} && m[y][x] == One && u == 2);\n",
        p.short, q.short
    );
    let cells = |name: &str| {
        let each = ["0_0", "0_1", "1_0", "1_1"].map(|index| format!("{name}_{index}"));
        format!("shared {}: 0..2;\n", each.join(", "))
    };
    let some: Vec<String> = (0..2)
        .flat_map(|x| (0..2).map(move |y| format!("s_b_{x}_{y} == {bad} && m_{y}_{x} == 1 && u == 2")))
        .collect();
    let long = format!(
        "{}{}shared s_a_0, s_a_1: 0..2;\nshared u: 0..3;\nprivate p_0, p_1: 0..2;\nprocess P(i: 0..1) {{\n    {}\n}}\n\
         process Q {{\n    {}\n}}\nforbid m_{r}_{c} == {bad} && s_a_{c} == 2;\nfinal !({});\n",
        cells("m"),
        cells("s_b"),
        p.long,
        q.long,
        some.join(" || ")
    );
    (short, long)
}

#[test]
fn differential_random_constructs_and_their_expansions() {
    let mut verdicts = std::collections::BTreeMap::new();
    let seeds = seeds(60).starting_at(1);
    for seed in seeds.range() {
        let (short, long) = pair(seed);
        let read = |text: &str| {
            let input = palisade::read(Source::new("random.pal", text), Language::Pal, None);
            input.unwrap_or_else(|refused| panic!("seed {seed}: {refused}\n{text}"))
        };
        let (written, expanded) = (read(&short), read(&long));
        assert_eq!(read(&print(&written.program)).program, written.program, "seed {seed}\n{short}");
        for model in Model::ALL {
            let ask = |program| {
                let options = CheckOptions { model, ..CheckOptions::default() };
                let limits = Limits::unlimited(1).with_work(2_000_000);
                palisade::check(program, &options, &limits).expect("an answer").outcome.word().to_owned()
            };
            let (found, expected) = (ask(&written.program), ask(&expanded.program));
            assert_eq!(found, expected, "seed {seed}, {}\n{short}\n{long}", model.name());
            *verdicts.entry(found).or_insert(0) += 1;
        }
    }
    assert!(verdicts.len() > 1 || !seeds.suffice(), "{verdicts:?}");
}
