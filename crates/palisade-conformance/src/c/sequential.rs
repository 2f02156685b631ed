//! Random C programs with one thread: integers of all types, arrays, structs, pointers, copies, calls, heap.
//!
//! The order of evaluation never matters, so that every compiler makes the same program of them. Some are undefined:
//! a few operations are left unguarded. A sanitizer then says which line is wrong.

use super::expressions::{Integer, Scope, Typed};
use super::{Text, finish, outputs};
use crate::random::Random;

/// A random program.
pub fn generate(seed: u64) -> String {
    let mut random = Random::new(seed);
    let careless = if random.percent(40) { 60 } else { 0 };
    let program = Generator {
        random,
        careless,
        text: Text::default(),
        globals: Vec::new(),
        arrays: Vec::new(),
        pointers: Vec::new(),
        fields: Vec::new(),
        structs: Vec::new(),
        functions: Vec::new(),
        names: 0,
        budget: 0,
        allocations: 2,
    };
    program.generate()
}

/// An array, all of whose elements have values.
#[derive(Clone, Debug)]
struct Array {
    name: String,
    ty: Integer,
    /// A power of two.
    len: usize,
    /// Whether it is on the heap.
    heap: bool,
}

/// A function without side effects on what its arguments read.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    parameters: Vec<Integer>,
    /// Whether it has another parameter: a pointer to an integer of this type.
    pointer: Option<Integer>,
}

struct Generator {
    random: Random,
    careless: usize,
    text: Text,
    /// Scalars that can be written, locals of open blocks among them.
    globals: Vec<Typed>,
    arrays: Vec<Array>,
    /// Pointers to integers, which are always valid, by name.
    pointers: Vec<(String, Integer)>,
    /// The integers in a `struct s`, as they follow the name of a variable.
    fields: Vec<Typed>,
    /// Variables of type `struct s`, as far as the dot.
    structs: Vec<String>,
    functions: Vec<Function>,
    names: usize,
    /// How many more statements the function may have.
    budget: usize,
    /// How many more allocations the program may have. Each may return anything that was freed, so that there are
    /// many runs.
    allocations: usize,
}

/// What was in scope when a block was opened.
struct Mark {
    globals: usize,
    arrays: usize,
    pointers: usize,
    structs: usize,
}

impl Generator {
    fn generate(mut self) -> String {
        for header in ["stdlib.h", "string.h", "assert.h"] {
            self.text.line(format!("#include <{header}>"));
        }
        self.declarations();
        let declared = std::mem::take(&mut self.text.text);
        let count = self.random.between(1, 3);
        for _ in 0..count {
            self.function();
        }
        self.table();
        self.text.open("int main(void)");
        self.budget = 10;
        let mark = self.mark();
        self.statements(3);
        self.reset(&mark);
        let mut compared: Vec<String> = self.globals.iter().map(|global| global.text.clone()).collect();
        for array in &self.arrays {
            compared.extend((0..array.len).map(|index| format!("{}[{index}]", array.name)));
        }
        for variable in &self.structs {
            compared.extend(self.fields.iter().map(|field| format!("{variable}{}", field.text)));
        }
        for (index, value) in compared.iter().enumerate() {
            self.text.line(format!("o{index} = (long){value};"));
        }
        self.text.line("finish();");
        self.text.line("return 0;");
        self.text.close("");
        declared + &outputs(compared.len()) + &finish(compared.len()) + &self.text.text
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn integer(&mut self) -> Integer {
        *self.random.pick(&Integer::ALL)
    }

    fn literal(&mut self) -> String {
        Scope::literal(&mut self.random).text
    }

    fn declarations(&mut self) {
        self.text.open("struct inner");
        let inner: Vec<Integer> = (0..2).map(|_| self.integer()).collect();
        for (index, ty) in inner.iter().enumerate() {
            self.text.line(format!("{} g{index};", ty.name()));
        }
        self.text.close(";");
        self.text.open("struct s");
        for index in 0..self.random.between(1, 3) {
            let ty = self.integer();
            self.text.line(format!("{} f{index};", ty.name()));
            self.fields.push(Typed::new(format!(".f{index}"), ty));
        }
        if self.random.percent(50) {
            let ty = self.integer();
            self.text.line(format!("{} a[2];", ty.name()));
            self.fields.extend((0..2).map(|index| Typed::new(format!(".a[{index}]"), ty)));
        }
        if self.random.percent(50) {
            self.text.line("struct inner i;");
            let fields = inner.iter().enumerate();
            self.fields.extend(fields.map(|(index, ty)| Typed::new(format!(".i.g{index}"), *ty)));
        }
        self.text.close(";");
        for _ in 0..self.random.between(2, 5) {
            let (name, ty, value) = (self.name("g"), self.integer(), self.literal());
            self.text.line(format!("static {} {name} = ({}){value};", ty.name(), ty.name()));
            self.globals.push(Typed::new(name, ty));
        }
        for _ in 0..self.random.between(1, 2) {
            let (name, ty) = (self.name("a"), self.integer());
            let len = [2, 4][self.random.below(2)];
            let values: Vec<String> =
                (0..len).map(|_| format!("({}){}", ty.name(), self.literal())).collect();
            self.text.line(format!("static {} {name}[{len}] = {{ {} }};", ty.name(), values.join(", ")));
            self.arrays.push(Array { name, ty, len, heap: false });
        }
        for _ in 0..self.random.between(1, 2) {
            let name = self.name("s");
            let init =
                if self.random.percent(50) { format!(" = {{ {} }}", self.literal()) } else { String::new() };
            self.text.line(format!("static struct s {name}{init};"));
            self.structs.push(name);
        }
        if self.random.percent(50) {
            let name = self.name("v");
            self.text.line(format!("static struct s {name}[2];"));
            self.structs.extend((0..2).map(|index| format!("{name}[{index}]")));
        }
        for _ in 0..self.random.between(0, 2) {
            let (name, (target, ty)) = (self.name("p"), self.target());
            self.text.line(format!("static {} *{name} = {target};", ty.name()));
            self.pointers.push((name, ty));
        }
    }

    /// The address of a variable, as a constant.
    fn target(&mut self) -> (String, Integer) {
        match self.random.below(3) {
            0 => {
                let global = self.random.pick(&self.globals).clone();
                (format!("&{}", global.text), global.ty)
            }
            1 => {
                let array = self.random.pick(&self.arrays).clone();
                (format!("&{}[{}]", array.name, self.random.below(array.len)), array.ty)
            }
            _ => {
                let (variable, field) =
                    (self.random.pick(&self.structs).clone(), self.random.pick(&self.fields).clone());
                (format!("&{variable}{}", field.text), field.ty)
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            globals: self.globals.len(),
            arrays: self.arrays.len(),
            pointers: self.pointers.len(),
            structs: self.structs.len(),
        }
    }

    fn reset(&mut self, mark: &Mark) {
        self.globals.truncate(mark.globals);
        self.arrays.truncate(mark.arrays);
        self.pointers.truncate(mark.pointers);
        self.structs.truncate(mark.structs);
    }

    fn function(&mut self) {
        let name = self.name("function");
        let result = self.integer();
        let parameters: Vec<Integer> = (0..self.random.between(0, 2)).map(|_| self.integer()).collect();
        let pointer = self.random.percent(40).then(|| self.integer());
        let mark = self.mark();
        let mut declared = Vec::new();
        for ty in &parameters {
            let name = self.name("n");
            declared.push(format!("{} {name}", ty.name()));
            self.globals.push(Typed::new(name, *ty));
        }
        if let Some(ty) = pointer {
            let name = self.name("p");
            declared.push(format!("{} *{name}", ty.name()));
            self.pointers.push((name, ty));
        }
        let declared = if declared.is_empty() { "void".to_owned() } else { declared.join(", ") };
        self.text.open(format!("static {} {name}({declared})", result.name()));
        self.budget = 6;
        self.statements(2);
        let value = self.expression(2);
        self.text.line(format!("return {};", value.text));
        self.text.close("");
        self.reset(&mark);
        self.functions.push(Function { name, parameters, pointer });
    }

    /// Functions that are called through a table of pointers.
    fn table(&mut self) {
        for index in 0..2 {
            let op = ["+", "^"][index];
            self.text.line(format!(
                "static int table{index}(unsigned a, unsigned b) {{ return (int)((a {op} b) & 1023); }}"
            ));
        }
        self.text.line("static int (*table[2])(unsigned, unsigned) = { table0, table1 };");
    }

    /// What can be read now.
    fn scope(&mut self) -> Scope {
        let mut readable = self.globals.clone();
        let careless = self.careless;
        let simple = Scope { readable: readable.clone(), careless: 0 };
        for array in self.arrays.clone() {
            let index = simple.expression(&mut self.random, 1).text;
            let mask = array.len - 1;
            let index =
                if self.random.below(1000) < careless { index } else { format!("({index}) & {mask}") };
            readable.push(Typed::new(format!("{}[{index}]", array.name), array.ty));
            readable.push(Typed::new(format!("{}[{}]", array.name, self.random.below(array.len)), array.ty));
        }
        for variable in self.structs.clone() {
            let field = self.random.pick(&self.fields).clone();
            readable.push(Typed::new(format!("{variable}{}", field.text), field.ty));
        }
        for (pointer, ty) in self.pointers.clone() {
            let text = if self.random.below(1000) < careless {
                format!("{pointer}[{}]", self.random.below(3))
            } else {
                format!("(*{pointer})")
            };
            readable.push(Typed::new(text, ty));
        }
        Scope { readable, careless }
    }

    fn expression(&mut self, depth: usize) -> Typed {
        let scope = self.scope();
        scope.expression(&mut self.random, depth)
    }

    fn condition(&mut self) -> String {
        let scope = self.scope();
        scope.condition(&mut self.random, 2)
    }

    /// Something that can be written.
    fn place(&mut self) -> Typed {
        let scope = self.scope();
        self.random.pick(&scope.readable).clone()
    }

    fn statements(&mut self, depth: usize) {
        for _ in 0..self.random.between(2, 4) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(depth);
        }
    }

    /// A block with its own variables.
    fn block(&mut self, head: String, depth: usize, rest: &str) {
        let mark = self.mark();
        self.text.open(head);
        self.statements(depth - 1);
        self.text.close(rest);
        self.reset(&mark);
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth == 0 { 12 } else { 18 }) {
            0..=2 => {
                let (place, value) = (self.place(), self.expression(3));
                self.text.line(format!("{} = {};", place.text, value.text));
            }
            3 => self.compound(),
            4 => {
                let (name, ty, value) = (self.name("l"), self.integer(), self.expression(2));
                self.text.line(format!("{} {name} = {};", ty.name(), value.text));
                self.globals.push(Typed::new(name, ty));
            }
            5 => {
                let (target, ty) = self.target();
                let name = self.name("p");
                self.text.line(format!("{} *{name} = {target};", ty.name()));
                self.pointers.push((name, ty));
            }
            6 => self.local_array(),
            7 => self.copy(),
            8 => self.point(),
            9 | 10 => self.call(),
            11 if self.allocations > 0 => self.heap(),
            11 => self.compound(),
            12 | 13 => {
                let condition = self.condition();
                self.block(format!("if {condition}"), depth, "");
                if self.random.percent(50) {
                    self.block("else".to_owned(), depth, "");
                }
            }
            14 => self.switch(depth),
            15 | 16 => {
                let (name, bound) = (self.name("i"), self.random.between(1, 4));
                let leaves = self.random.percent(30).then(|| self.condition());
                let mark = self.mark();
                self.text.open(format!("for (int {name} = 0; {name} < {bound}; {name}++)"));
                if let Some(condition) = leaves {
                    let word = ["break", "continue"][self.random.below(2)];
                    self.text.line(format!("if {condition} {word};"));
                }
                self.statements(depth - 1);
                self.text.close("");
                self.reset(&mark);
            }
            _ => {
                let (name, condition) = (self.name("i"), self.condition());
                self.text.line(format!("int {name} = 0;"));
                self.block("do".to_owned(), depth, &format!(" while ({name}++ < 2 && {condition});"));
            }
        }
    }

    fn compound(&mut self) {
        let (place, value) = (self.place(), self.expression(2));
        let (text, value) = (place.text, value.text);
        let unsigned = matches!(place.ty, Integer::UInt | Integer::ULong);
        let small = matches!(place.ty, Integer::Char | Integer::UChar | Integer::Short | Integer::UShort);
        let line = match self.random.below(6) {
            0 if unsigned || small => format!("{text}++;"),
            1 if unsigned || small => format!("--{text};"),
            2 if unsigned => format!("{text} {}= {value};", ["+", "-", "*"][self.random.below(3)]),
            2 | 3 if small => format!("{text} {}= ({value} & 127);", ["+", "-", "*"][self.random.below(3)]),
            4 if place.ty != Integer::Bool => format!("{text} /= (({value} & 7) + 1);"),
            5 if place.ty != Integer::Bool => format!("{text} >>= ({value} & 7);"),
            _ => format!("{text} {}= {value};", ["&", "|", "^"][self.random.below(3)]),
        };
        self.text.line(line);
    }

    fn local_array(&mut self) {
        let (name, ty) = (self.name("a"), self.integer());
        let len = [2, 4][self.random.below(2)];
        let values: Vec<String> =
            (0..len).map(|_| format!("({})({})", ty.name(), self.expression(1).text)).collect();
        self.text.line(format!("{} {name}[{len}] = {{ {} }};", ty.name(), values.join(", ")));
        self.arrays.push(Array { name, ty, len, heap: false });
    }

    fn copy(&mut self) {
        let (to, from) = (self.random.pick(&self.structs).clone(), self.random.pick(&self.structs).clone());
        let line = match self.random.below(5) {
            0 => {
                let name = self.name("s");
                self.structs.push(name.clone());
                format!("struct s {name} = {from};")
            }
            1 => format!("memset(&{to}, 0, sizeof {to});"),
            2 if to != from => format!("memcpy(&{to}, &{from}, sizeof(struct s));"),
            3 => {
                // Copies on the heap are of whole structs only.
                let arrays: Vec<Array> = self.arrays.iter().filter(|array| !array.heap).cloned().collect();
                let array = self.random.pick(&arrays).clone();
                let len = self.random.between(1, array.len);
                let len = if self.random.below(500) < self.careless { len + 3 } else { len };
                // Not every byte is a truth value.
                let byte = if array.ty == Integer::Bool { 1 } else { [0, 0, 255][self.random.below(3)] };
                format!("memset({}, {byte}, {len} * sizeof *{});", array.name, array.name)
            }
            _ => format!("{to} = {from};"),
        };
        self.text.line(line);
    }

    /// Moves or compares pointers.
    fn point(&mut self) {
        let Some((pointer, ty)) =
            (!self.pointers.is_empty()).then(|| self.random.pick(&self.pointers).clone())
        else {
            return;
        };
        let same: Vec<Array> = self.arrays.iter().filter(|array| array.ty == ty).cloned().collect();
        if same.is_empty() {
            let place = self.place().text;
            return self.text.line(format!("{place} = {pointer} == 0 || {pointer} != {pointer};"));
        }
        let array = self.random.pick(&same).clone();
        let index = self.expression(1).text;
        let mask = array.len - 1;
        // A pointer to a local of a block must not outlive it: such a pointer is a new one.
        let name = self.name("p");
        self.text.line(format!("{} *{name} = {} + (({index}) & {mask});", ty.name(), array.name));
        let place = self.place().text;
        match self.random.below(3) {
            0 => self.text.line(format!("{place} = {name} - {};", array.name)),
            1 => self.text.line(format!("{place} = {name} < &{}[{}];", array.name, array.len - 1)),
            _ => self.text.line(format!("if ({name} > {}) {name}--;", array.name)),
        }
        self.pointers.push((name, ty));
    }

    fn call(&mut self) {
        // What is on the left side of the assignment must not depend on what the function does.
        let place = self.random.pick(&self.globals).clone();
        if self.functions.is_empty() || self.depends_on_table() {
            let (a, b) = (self.expression(1).text, self.expression(1).text);
            let function = if self.functions.is_empty() { None } else { Some(self.expression(1).text) };
            match function {
                Some(index) => {
                    self.text.line(format!("{} = table[({index}) & 1]({a}, {b});", place.text));
                }
                None => self.text.line(format!("{} = ({a}) != ({b});", place.text)),
            }
            return;
        }
        let function = self.random.pick(&self.functions).clone();
        let mut arguments: Vec<String> =
            (0..function.parameters.len()).map(|_| self.expression(2).text).collect();
        if let Some(ty) = function.pointer {
            let fitting: Vec<String> = self
                .globals
                .iter()
                .filter(|global| global.ty == ty)
                .map(|g| format!("&{}", g.text))
                .collect();
            let arrays = self.arrays.iter().filter(|array| array.ty == ty).map(|array| array.name.clone());
            let fitting: Vec<String> = fitting.into_iter().chain(arrays).collect();
            if fitting.is_empty() {
                let name = self.name("l");
                self.text.line(format!("{} {name} = 1;", ty.name()));
                arguments.push(format!("&{name}"));
                self.globals.push(Typed::new(name, ty));
            } else {
                arguments.push(self.random.pick(&fitting).clone());
            }
        }
        let call = format!("{}({})", function.name, arguments.join(", "));
        match self.random.below(3) {
            0 => self.text.line(format!("{call};")),
            1 => self.text.line(format!("if ({call} > 3) {} = 1;", place.text)),
            _ => self.text.line(format!("{} = {call};", place.text)),
        }
    }

    /// Whether to call through the table. It is declared after the functions.
    fn depends_on_table(&mut self) -> bool {
        self.budget > 6 && self.random.percent(40)
    }

    fn heap(&mut self) {
        self.allocations -= 1;
        // What an array of bytes on the heap is for is not clear from its use.
        let wide =
            [Integer::Short, Integer::UShort, Integer::Int, Integer::UInt, Integer::Long, Integer::ULong];
        let (name, ty) = (self.name("h"), *self.random.pick(&wide));
        let word = ty.name();
        let mark = self.mark();
        self.text.open("");
        if self.random.percent(50) {
            let len = [2, 4][self.random.below(2)];
            if self.random.percent(50) {
                self.text.line(format!("{word} *{name} = calloc({len}, sizeof({word}));"));
            } else {
                self.text.line(format!("{word} *{name} = malloc({len} * sizeof({word}));"));
                let value = self.expression(1).text;
                self.text.line(format!("for (int k = 0; k < {len}; k++) {name}[k] = {value};"));
            }
            self.arrays.push(Array { name: name.clone(), ty, len, heap: true });
        } else {
            self.text.line(format!("struct s *{name} = malloc(sizeof *{name});"));
            let from = self.random.pick(&self.structs).clone();
            self.text.line(format!("*{name} = {from};"));
            self.structs.push(format!("(*{name})"));
        }
        self.statements(0);
        let (target, value) =
            (self.random.pick(&self.globals[..mark.globals.min(2)]).clone(), self.place().text);
        self.text.line(format!("{} = {value};", target.text));
        self.text.line(format!("free({name});"));
        if self.random.below(200) < self.careless {
            match self.random.below(2) {
                0 => self.text.line(format!("free({name});")),
                _ => {
                    let value = self.place().text;
                    self.text.line(format!("{} = {value};", target.text));
                }
            }
        }
        self.text.close("");
        self.reset(&mark);
    }

    fn switch(&mut self, depth: usize) {
        let value = self.expression(2).text;
        self.text.open(format!("switch ({value})"));
        let cases = ["0", "1", "-1", "2", "127", "255"];
        let first = self.random.below(3);
        for case in &cases[first..first + 3] {
            self.text.line(format!("case {case}:"));
            self.block(String::new(), depth, "");
            if self.random.percent(70) {
                self.text.line("break;");
            }
        }
        self.text.line("default:");
        self.block(String::new(), depth, "");
        self.text.close("");
    }
}
