//! A witness as one table: which process does what in which line, the value read or written, every store
//! buffer, memory.
//!
//! The table is made to fit the given width. These measures are taken in this order until it fits:
//!
//! 1. Long instructions are cut.
//! 2. Memory is shown by its changes instead of one column per cell.
//! 3. Of the buffers, only that of the process that takes the step is shown.
//! 4. For very long names, effects and buffers are cut, and memory is shown only by the effects.
//!
//! If a store reaches memory, the number of its step is never cut. If the width is [`UNLIMITED`], nothing is
//! cut at all, and the first layout that is no wider than usual is used. Steps that overtook a store are
//! marked with `*` and explained below the table.

use crate::story::Story;
use crate::table::{self, Align, Column};
use crate::{Colour, UNLIMITED, fit, forever};
use palisade_base::limits;
use palisade_memory::{Pending, State};
use palisade_program::running::{CellId, ThreadId};
use palisade_trace::Evidence;

/// What happens to steps that touch no shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LocalSteps {
    /// They are left out. They are still counted, and the last step is always shown.
    #[default]
    Folded,
    /// They are shown.
    Shown,
}

/// A table without a width limit is made this wide, if nothing has to be cut for that.
const USUAL_WIDTH: usize = 120;
/// Instructions are cut to this many characters, and further if the table would not fit.
const WIDEST_SOURCE: usize = 44;
const NARROWEST_SOURCE: usize = 17;
/// Buffers are cut to this many characters.
const WIDEST_BUFFER: usize = 40;
/// Effects and buffers are cut to this many characters if nothing else helps.
const NARROW_CELL: usize = 36;
/// At most this many notes below the table.
const MAX_NOTES: usize = 12;

/// The run as a table, with notes below it about steps that overtook stores.
pub fn witness(evidence: &Evidence<'_>, local: LocalSteps, width: usize, colour: Colour) -> String {
    let cuts = if width == UNLIMITED { Cuts::Nothing } else { Cuts::ToFit };
    let builder = TableBuilder { evidence, story: Story::new(evidence), cuts };
    let story = &builder.story;
    let steps = evidence.run.steps.len();
    let repeated = forever::first_step(evidence);
    let shown: Vec<usize> = (0..steps)
        .filter(|&step| local == LocalSteps::Shown || step + 1 == steps || !story.is_local(step))
        .collect();
    // The row of the first step of the cycle that is shown. The heading and the initial state come first.
    let repeated = repeated.map(|from| 2 + shown.iter().filter(|&&step| step < from).count());
    let columns = builder.layout(&shown, width);

    let mut text = String::new();
    for (row, line) in table::lines(&columns).into_iter().enumerate() {
        // The heading and the initial state come before the first step.
        let step = row.checked_sub(2).map(|index| shown[index]);
        if repeated == Some(row) {
            text.push_str(&colour.paint("1", forever::FROM_HERE));
            text.push('\n');
        }
        let reordered = step.is_some_and(|step| !story.links.overtakes[step].is_empty());
        let painted = match () {
            () if row == 0 => colour.paint("1", &line),
            () if reordered => colour.paint("33", &line),
            () => line,
        };
        text.push_str(&painted);
        text.push('\n');
    }
    if repeated == Some(2 + shown.len()) {
        text.push_str(&colour.paint("1", forever::NOTHING_MOVES));
        text.push('\n');
    }
    let notes = story.notes();
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes.iter().take(MAX_NOTES) {
        text.push_str(&colour.paint("33", note));
        text.push('\n');
    }
    if notes.len() > MAX_NOTES {
        text.push_str(&format!("  and {} more\n", notes.len() - MAX_NOTES));
    }
    if shown.len() < steps {
        let hidden = steps - shown.len();
        let plural = if hidden == 1 { "step" } else { "steps" };
        text.push_str(&format!("\n{hidden} local {plural} not shown (-v shows all)\n"));
    }
    text
}

struct TableBuilder<'a> {
    evidence: &'a Evidence<'a>,
    story: Story<'a>,
    cuts: Cuts,
}

/// Whether text may be cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cuts {
    Nothing,
    ToFit,
}

impl TableBuilder<'_> {
    /// The first layout of columns that fits, or the narrowest.
    fn layout(&self, shown: &[usize], width: usize) -> Vec<Column> {
        let threads = self.buffered_threads();
        let mut best = Vec::new();
        let (arrangements, width) = match self.cuts {
            Cuts::Nothing => (0..3, USUAL_WIDTH),
            Cuts::ToFit => (0..4, width),
        };
        for arrangement in arrangements {
            limits::checkpoint();
            let mut columns = self.step_columns(shown);
            if arrangement < 2 {
                columns.extend(threads.iter().map(|&thread| self.buffer_column(thread, shown)));
            } else if !threads.is_empty() {
                columns.push(self.own_buffer_column(shown));
            }
            match arrangement {
                0 => {
                    let first = columns.len();
                    columns.extend(self.story.cells().into_iter().map(|cell| self.cell_column(cell, shown)));
                    if let Some(column) = columns.get_mut(first) {
                        column.heading.insert_str(0, "memory ");
                    }
                }
                1 | 2 => columns.push(self.memory_column(shown)),
                _ => {
                    for column in &mut columns[EFFECT_COLUMN..] {
                        column.cells.iter_mut().for_each(|cell| *cell = fit(cell, NARROW_CELL));
                    }
                }
            }
            let excess = table::width(&columns).saturating_sub(width);
            if self.cuts == Cuts::ToFit {
                let source = &mut columns[SOURCE_COLUMN];
                let narrow = source.width().saturating_sub(excess).max(NARROWEST_SOURCE);
                // The first row is the initial state.
                for (row, cell) in source.cells.iter_mut().enumerate() {
                    if cell.chars().count() > narrow {
                        let store = row.checked_sub(1).and_then(|row| self.story.links.store_of[shown[row]]);
                        *cell =
                            store.map_or_else(|| fit(cell, narrow), |store| format!("(step {})", store + 1));
                    }
                }
            }
            best = columns;
            if table::width(&best) <= width {
                break;
            }
        }
        best
    }

    /// Step, process, line, instruction, effect. The first row is the initial state.
    fn step_columns(&self, shown: &[usize]) -> Vec<Column> {
        let column = |heading: &str, align, first: &str, cell: &dyn Fn(usize) -> String| {
            let cells = std::iter::once(first.to_owned()).chain(shown.iter().map(|&step| cell(step)));
            Column::new(heading, align, cells.collect())
        };
        let mark = |step: usize| if self.story.links.overtakes[step].is_empty() { ' ' } else { '*' };
        vec![
            column("step ", Align::Right, "0 ", &|step| format!("{}{}", step + 1, mark(step))),
            column("process", Align::Left, "", &|step| {
                self.evidence.name(self.evidence.run.steps[step].thread)
            }),
            column("line", Align::Right, "", &|step| self.story.line(step)),
            column("instruction", Align::Left, "(start)", &|step| {
                self.fit(self.story.source(step), WIDEST_SOURCE)
            }),
            column("effect", Align::Left, "", &|step| self.story.effect(step)),
        ]
    }

    fn buffer_column(&self, thread: ThreadId, shown: &[usize]) -> Column {
        let buffer = |state: &State| self.buffer(state, thread);
        Column::new(
            format!("buffer {}", self.evidence.name(thread)),
            Align::Left,
            self.per_state(shown, &buffer),
        )
    }

    /// The buffer of the process that takes the step.
    fn own_buffer_column(&self, shown: &[usize]) -> Column {
        let own = |&step: &usize| {
            self.buffer(&self.evidence.replay.states[step + 1], self.evidence.run.steps[step].thread)
        };
        let cells = std::iter::once(String::new()).chain(shown.iter().map(own));
        Column::new("own buffer", Align::Left, cells.collect())
    }

    fn cell_column(&self, cell: CellId, shown: &[usize]) -> Column {
        let name = self.evidence.machine.system.cells[cell].name.clone();
        Column::new(
            name,
            Align::Right,
            self.per_state(shown, &|state| self.evidence.value(cell, state.memory[cell])),
        )
    }

    /// Memory by its changes. The first row shows all relevant cells that are not 0.
    fn memory_column(&self, shown: &[usize]) -> Column {
        let assignments = |state: &State, cells: &[CellId]| {
            let cells: Vec<String> =
                cells.iter().map(|&cell| self.story.assignment(cell, state.memory[cell])).collect();
            cells.join(" ")
        };
        let states = &self.evidence.replay.states;
        // Memory that was never written says nothing.
        let is_written = |value| !self.evidence.addresses.is_some_and(|a| a.is_uninitialised(value));
        let is_telling = |&cell: &CellId| states[0].memory[cell] != 0 && is_written(states[0].memory[cell]);
        let nonzero: Vec<CellId> = self.story.cells().into_iter().filter(is_telling).collect();
        let changes = |&step: &usize| {
            let (before, after) = (&states[step], &states[step + 1]);
            let changed: Vec<CellId> =
                after.memory.ids().filter(|&cell| before.memory[cell] != after.memory[cell]).collect();
            assignments(after, &changed)
        };
        let first = if nonzero.is_empty() {
            "all 0".to_owned()
        } else {
            self.fit(assignments(&states[0], &nonzero), 40)
        };
        Column::new("memory", Align::Left, std::iter::once(first).chain(shown.iter().map(changes)).collect())
    }

    /// One cell for the initial state and one for the state after each step shown.
    fn per_state(&self, shown: &[usize], cell: &dyn Fn(&State) -> String) -> Vec<String> {
        let states = &self.evidence.replay.states;
        std::iter::once(cell(&states[0])).chain(shown.iter().map(|&step| cell(&states[step + 1]))).collect()
    }

    fn buffer(&self, state: &State, thread: ThreadId) -> String {
        let Some(thread) = state.threads.get(thread) else { return String::new() };
        let entries: Vec<String> = thread
            .buffer
            .iter()
            .map(|entry| match entry {
                Pending::Store(cell, value) => self.story.assignment(*cell, *value),
                Pending::Barrier => "|".to_owned(),
            })
            .collect();
        self.fit(entries.join(" "), WIDEST_BUFFER)
    }

    /// The text, cut if that is allowed.
    fn fit(&self, text: String, width: usize) -> String {
        match self.cuts {
            Cuts::Nothing => text,
            Cuts::ToFit => fit(&text, width),
        }
    }

    /// The threads whose buffer is not empty at some point.
    fn buffered_threads(&self) -> Vec<ThreadId> {
        let states = &self.evidence.replay.states;
        let waits = |thread: &ThreadId| {
            states.iter().any(|state| state.threads.get(*thread).is_some_and(|t| !t.buffer.is_empty()))
        };
        self.evidence.last_state().threads.ids().filter(waits).collect()
    }
}

/// Which of the step columns holds the instruction, and which the effect.
const SOURCE_COLUMN: usize = 3;
const EFFECT_COLUMN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use palisade_base::{IdVec, Source, Span};
    use palisade_memory::{Action, Machine, Model, Step};
    use palisade_program::running::{
        Address, BinaryOp, Cell, Code, CodeId, Condition, Edge, EdgeId, Expr, Instance, Instr, Location,
        Property, PropertyKind, RegId, Register, Role, RoleId, System, TemplateId, TemplateInfo, Type,
    };
    use palisade_trace::{Run, replay};

    const TEXT: &str = "\
shared x, y;
process P { x = 1; r = y; }
process Q { y = 1; r = x; }
final P.r == 1 || Q.r == 1;
";

    fn span(text: &str, from: usize) -> Span {
        let start = from + TEXT[from..].find(text).expect("the text is in the source");
        Span::new(start..start + text.len())
    }

    /// Store buffering: both processes read 0.
    fn system() -> System {
        let int = Type::INT;
        let cell = |name: &str, address| Cell {
            name: name.to_owned(),
            ty: int,
            init: Some(0),
            address,
            span: Span::NONE,
        };
        let cells = vec![cell("x", 1), cell("y", 2)].into();
        let code = |name: &str, stored: u32, loaded: u32, texts: [&str; 2], from: usize| {
            let edge = |at: u32, instr, text| Edge {
                source: Location(at),
                target: Location(at + 1),
                instr,
                span: span(text, from),
            };
            let store = Instr::Store(Address::Cell(CellId(stored)), Expr::Const(1));
            let load = Instr::Load(RegId(0), Address::Cell(CellId(loaded)));
            let edges = vec![edge(0, store, texts[0]), edge(1, load, texts[1])];
            let mut code = Code::new(name.to_owned(), Location(0), Location(2), 3, edges);
            code.registers = IdVec::from(vec![Register::declared("r", int)]);
            code
        };
        let names = ["P", "Q"];
        let read_one = |thread| {
            let register = Condition::Register(ThreadId(thread), RegId(0));
            Condition::Binary(BinaryOp::Eq, Box::new(register), Box::new(Condition::Const(1)))
        };
        let either = Condition::Binary(BinaryOp::Or, Box::new(read_one(0)), Box::new(read_one(1)));
        System {
            enums: Vec::new(),
            addresses: palisade_program::running::Addresses::new(&cells),
            cells,
            codes: vec![code("P", 0, 1, ["x = 1", "r = y"], 13), code("Q", 1, 0, ["y = 1", "r = x"], 40)]
                .into(),
            roles: (0..2)
                .map(|i| Role {
                    template: TemplateId(i),
                    args: Vec::new(),
                    code: CodeId(i),
                    name: names[i as usize].to_owned(),
                })
                .collect(),
            templates: (0..2)
                .map(|i| TemplateInfo { name: names[i as usize].to_owned(), roles: vec![RoleId(i)] })
                .collect(),
            privates: 0,
            instances: (0..2)
                .map(|i| Instance { role: RoleId(i), name: names[i as usize].to_owned() })
                .collect(),
            properties: vec![Property {
                kind: PropertyKind::Final,
                bad: Condition::Unary(palisade_program::running::UnaryOp::Not, Box::new(either)),
                reads_memory: false,
                span: span("final P.r == 1 || Q.r == 1", 0),
            }],
            goals: Vec::new(),
            fair: Vec::new(),
        }
    }

    fn check(width: usize, expected: &str) {
        let (system, source) = (system(), Source::new("sb.pal", TEXT));
        let machine = Machine::new(&system, Model::Tso);
        let execute = |thread, edge| Step {
            thread: ThreadId(thread),
            action: Action::Execute { edge: EdgeId(edge), choice: None },
        };
        let update = |thread| Step { thread: ThreadId(thread), action: Action::Update { position: 0 } };
        let steps = vec![execute(0, 0), execute(0, 1), execute(1, 0), execute(1, 1), update(0), update(1)];
        let run = Run { memory: vec![0, 0], steps };
        let replay = replay(machine, &run).expect("the run is a witness");
        let evidence = Evidence { source: &source, addresses: None, machine, run: &run, replay: &replay };
        let table = witness(&evidence, LocalSteps::Folded, width, Colour::Never);
        assert_eq!(table, expected, "\n{table}");
        assert_eq!(
            explain(&evidence),
            "at the end, P.r = 0 and Q.r = 0 (line 4: final P.r == 1 || Q.r == 1)"
        );
    }

    #[test]
    fn wide() {
        check(
            120,
            "\
step   process  line  instruction        effect           buffer P  buffer Q  memory x  y
   0                  (start)                                                        0  0
   1   P           2  x = 1              store x = 1      x=1                        0  0
   2*  P           2  r = y              read y = 0       x=1                        0  0
   3   Q           3  y = 1              store y = 1      x=1       y=1              0  0
   4*  Q           3  r = x              read x = 0       x=1       y=1              0  0
   5   P              (store of step 1)  x = 1 to memory            y=1              1  0
   6   Q              (store of step 3)  y = 1 to memory                             1  1

* step 2: P reads y while its store from step 1 is still in the buffer
* step 4: Q reads x while its store from step 3 is still in the buffer
",
        );
    }

    #[test]
    fn narrow() {
        check(
            76,
            "\
step   process  line  instruction        effect           own buffer  memory
   0                  (start)                                         all 0
   1   P           2  x = 1              store x = 1      x=1
   2*  P           2  r = y              read y = 0       x=1
   3   Q           3  y = 1              store y = 1      y=1
   4*  Q           3  r = x              read x = 0       y=1
   5   P              (store of step 1)  x = 1 to memory              x=1
   6   Q              (store of step 3)  y = 1 to memory              y=1

* step 2: P reads y while its store from step 1 is still in the buffer
* step 4: Q reads x while its store from step 3 is still in the buffer
",
        );
    }
}
