//! The names in the written form of a program.

use super::text::tokens;
use super::{Symbol, SymbolKind, Symbols};
use crate::pal::{TokenKind, Word};
use palisade_base::{Source, Span, limits};
use palisade_program::written::{
    Block, Domain, Expr, ExprKind, Init, InitValue, Name, Observation, Outside, Param, Place, PlaceKind,
    ProcessRef, Program, ProgressKind, Stmt, StmtKind, Type,
};
use rustc_hash::FxHashMap;

/// The symbols of a program, except its constants.
pub(super) fn symbols(program: &Program, source: &Source) -> Symbols {
    let mut walk = Walk::new(source);
    walk.declare_all(program);
    walk.use_all(program);
    Symbols { symbols: walk.symbols, properties: properties(program) }
}

fn properties(program: &Program) -> Vec<Span> {
    let conditions = program.properties.iter().map(|property| property.origin.0);
    let mut found: Vec<Span> =
        conditions.chain(program.progress.iter().map(|progress| progress.origin.0)).collect();
    found.sort_unstable();
    found
}

/// Names of one kind, and the index of the symbol of each.
type Scope = FxHashMap<String, usize>;

/// The names of a body.
#[derive(Default)]
struct Body {
    variables: Scope,
    labels: Scope,
}

struct Walk<'a> {
    source: &'a Source,
    symbols: Vec<Symbol>,
    /// Shared and private variables.
    variables: Scope,
    procedures: Scope,
    templates: Scope,
    /// The variables of `for` loops, by the place of the name.
    loops: FxHashMap<Span, usize>,
    /// Of each procedure and then of each template, by its name.
    procedure_bodies: FxHashMap<String, Body>,
    template_bodies: FxHashMap<String, Body>,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source) -> Walk<'a> {
        Walk {
            source,
            symbols: Vec::new(),
            variables: Scope::default(),
            procedures: Scope::default(),
            templates: Scope::default(),
            loops: FxHashMap::default(),
            procedure_bodies: FxHashMap::default(),
            template_bodies: FxHashMap::default(),
        }
    }

    fn declare(
        &mut self,
        kind: SymbolKind,
        name: &Name,
        whole: Span,
        within: Option<Span>,
        detail: String,
    ) -> usize {
        self.symbols.push(Symbol {
            kind,
            name: name.as_str().to_owned(),
            declared: name.span(),
            whole,
            within,
            detail,
            uses: Vec::new(),
        });
        self.symbols.len() - 1
    }

    /// The declarations. A valid program declares no name twice in a scope.
    fn declare_all(&mut self, program: &Program) {
        for declared in &program.enums {
            let whole = declared.origin.0;
            self.declare(SymbolKind::Enum, &declared.name, whole, None, self.heading(whole));
            for (number, value) in declared.values.iter().enumerate() {
                let within = Some(declared.name.span());
                let detail = format!("`{value}` = {number}, a value of `{}`", declared.name);
                self.declare(SymbolKind::EnumValue, value, value.span(), within, detail);
            }
        }
        // Parts of variables have no names of their own in the text.
        for shared in program.shared.iter().filter(|shared| !shared.name.span().is_none()) {
            let len = shared.len.map_or_else(String::new, |len| format!("[{len}]"));
            let detail = format!("shared {}{len}: {}", shared.name, domain(shared.ty, program));
            let symbol = self.declare(SymbolKind::Shared, &shared.name, shared.origin.0, None, detail);
            self.variables.insert(shared.name.as_str().to_owned(), symbol);
        }
        for private in program.privates.iter().filter(|private| !private.name.span().is_none()) {
            let detail = format!("private {}: {}", private.name, domain(private.ty, program));
            let symbol = self.declare(SymbolKind::Private, &private.name, private.origin.0, None, detail);
            self.variables.insert(private.name.as_str().to_owned(), symbol);
        }
        for procedure in &program.procedures {
            let (name, heading) = (&procedure.name, procedure.origin.0);
            let symbol = self.declare(SymbolKind::Procedure, name, heading, None, self.heading(heading));
            self.procedures.insert(name.as_str().to_owned(), symbol);
            let body = self.declare_body(program, &procedure.params, &procedure.body, name.span());
            self.procedure_bodies.insert(name.as_str().to_owned(), body);
        }
        for template in &program.templates {
            let (name, heading) = (&template.name, template.origin.0);
            let symbol = self.declare(SymbolKind::Process, name, heading, None, self.heading(heading));
            self.templates.insert(name.as_str().to_owned(), symbol);
            let body = self.declare_body(program, &template.params, &template.body, name.span());
            self.template_bodies.insert(name.as_str().to_owned(), body);
        }
    }

    fn heading(&self, span: Span) -> String {
        self.source.slice(span).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn declare_body(&mut self, program: &Program, params: &[Param], block: &Block, within: Span) -> Body {
        let mut body = Body::default();
        for param in params {
            let detail = format!("{}: {}", param.name, domain(param.ty, program));
            let span = param.name.span();
            let symbol = self.declare(SymbolKind::Parameter, &param.name, span, Some(within), detail);
            body.variables.insert(param.name.as_str().to_owned(), symbol);
        }
        self.declare_block(program, block, within, &mut body);
        body
    }

    /// The parsers limit how deep blocks nest.
    fn declare_block(&mut self, program: &Program, block: &Block, within: Span, body: &mut Body) {
        for stmt in block {
            limits::checkpoint();
            for label in &stmt.labels {
                let detail = format!("{label}:");
                let symbol = self.declare(SymbolKind::Label, label, label.span(), Some(within), detail);
                body.labels.insert(label.as_str().to_owned(), symbol);
            }
            if let Some(name) = loop_variable(stmt, self.source) {
                let (detail, whole) = (self.heading(stmt.span()), stmt.span());
                let symbol = self.declare(SymbolKind::Register, &name, whole, Some(within), detail);
                self.loops.insert(name.span(), symbol);
            }
            // The register of a loop has no statement of its own.
            if let StmtKind::Let { name, ty, .. } = &stmt.kind
                && !stmt.span().is_none()
                && !name.span().is_none()
            {
                let detail = format!("let {name}: {}", domain(*ty, program));
                let symbol = self.declare(SymbolKind::Register, name, stmt.span(), Some(within), detail);
                body.variables.insert(name.as_str().to_owned(), symbol);
            }
            stmt.kind.blocks().into_iter().for_each(|inner| self.declare_block(program, inner, within, body));
        }
    }

    fn use_all(&mut self, program: &Program) {
        let bodies = (std::mem::take(&mut self.procedure_bodies), std::mem::take(&mut self.template_bodies));
        let nothing = Body::default();
        let mut uses = Uses { walk: self, templates: &bodies.1, body: &nothing, loops: Vec::new() };
        for shared in &program.shared {
            // A declaration of several variables has one initial value, which each of them has.
            match &shared.init {
                Init::Every(value) => uses.initial(value),
                Init::Each(values) => values.iter().for_each(|value| uses.initial(value)),
            }
        }
        for procedure in &program.procedures {
            uses.body = bodies.0.get(procedure.name.as_str()).unwrap_or(&nothing);
            uses.block(&procedure.body);
        }
        for template in &program.templates {
            uses.body = bodies.1.get(template.name.as_str()).unwrap_or(&nothing);
            uses.block(&template.body);
        }
        uses.body = &nothing;
        program.properties.iter().for_each(|property| uses.expr(&property.condition));
        for progress in &program.progress {
            match &progress.kind {
                ProgressKind::Live(condition) => uses.expr(condition),
                ProgressKind::Leaves { process, label } => uses.label_of(process, label),
                ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Terminates => {}
            }
        }
        for symbol in &mut self.symbols {
            symbol.uses.retain(|span| !span.is_none() && *span != symbol.declared);
            symbol.uses.sort_unstable();
            symbol.uses.dedup();
        }
    }
}

/// The uses of names.
struct Uses<'w, 'a> {
    walk: &'w mut Walk<'a>,
    templates: &'w FxHashMap<String, Body>,
    /// The body that is looked at.
    body: &'w Body,
    /// The variables of the loops around the current statement.
    loops: Vec<(Name, usize)>,
}

impl Uses<'_, '_> {
    fn add(&mut self, symbol: Option<usize>, name: &Name) {
        if let Some(symbol) = symbol {
            self.walk.symbols[symbol].uses.push(name.span());
        }
    }

    fn variable(&mut self, name: &Name) {
        let text = name.as_str();
        let of_loop = self.loops.iter().rfind(|(known, _)| known == name).map(|(_, symbol)| symbol);
        let symbol =
            of_loop.or_else(|| self.body.variables.get(text)).or_else(|| self.walk.variables.get(text));
        self.add(symbol.copied(), name);
    }

    fn template(&mut self, name: &Name) {
        self.add(self.walk.templates.get(name.as_str()).copied(), name);
    }

    fn label(&mut self, template: &Name, label: &Name) {
        self.template(template);
        let body = self.templates.get(template.as_str());
        self.add(body.and_then(|body| body.labels.get(label.as_str())).copied(), label);
    }

    fn label_of(&mut self, process: &ProcessRef, label: &Name) {
        self.label(&process.template, label);
    }

    fn initial(&mut self, value: &InitValue) {
        if let InitValue::Const(value) = value {
            self.expr(value);
        }
    }

    fn block(&mut self, block: &Block) {
        block.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        limits::checkpoint();
        let variable = loop_variable(stmt, self.walk.source);
        let of_loop = variable.and_then(|name| Some((self.walk.loops.get(&name.span()).copied()?, name)));
        let depth = self.loops.len();
        self.loops.extend(of_loop.map(|(symbol, name)| (name, symbol)));
        match &stmt.kind {
            StmtKind::Let { init, .. } => init.iter().for_each(|init| self.expr(init)),
            StmtKind::Assign { place, value } => {
                self.place(place);
                self.expr(value);
            }
            StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                self.expr(e)
            }
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => self.expr(condition),
            StmtKind::Goto(label) => self.add(self.body.labels.get(label.as_str()).copied(), label),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Spawn { template, args } => {
                self.template(template);
                args.iter().for_each(|arg| self.expr(arg));
            }
            StmtKind::Skip
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Loop(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Choose(_)
            | StmtKind::Atomic(_)
            | StmtKind::Block(_) => {}
        }
        stmt.kind.blocks().into_iter().for_each(|inner| self.block(inner));
        self.loops.truncate(depth);
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Read(place) | ExprKind::AddressOf(place) => self.place(place),
            ExprKind::Unary(_, a) => self.expr(a),
            ExprKind::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Locked(_, place, operands) => {
                self.place(place);
                operands.iter().for_each(|operand| self.expr(operand));
            }
            ExprKind::Call(name, args) => {
                self.add(self.walk.procedures.get(name.as_str()).copied(), name);
                args.iter().for_each(|arg| self.expr(arg));
            }
            ExprKind::Observe(Observation::At { process, label }) => self.label_of(process, label),
            ExprKind::Observe(Observation::Count { template, label }) => self.label(template, label),
            ExprKind::Observe(Observation::Register { process, register }) => {
                self.template(&process.template);
                let body = self.templates.get(process.template.as_str());
                self.add(body.and_then(|body| body.variables.get(register.as_str())).copied(), register);
            }
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } => {}
        }
    }

    fn place(&mut self, place: &Place) {
        match &place.kind {
            PlaceKind::Named(name) => self.variable(name),
            PlaceKind::Element(name, index) => {
                self.variable(name);
                self.expr(index);
            }
            PlaceKind::Deref(pointer) => self.expr(pointer),
        }
    }
}

/// The variable of a `for` loop, which is read as a block with the heading as its place.
fn loop_variable(stmt: &Stmt, source: &Source) -> Option<Name> {
    let heading = stmt.span();
    let StmtKind::Block(block) = &stmt.kind else { return None };
    if heading.is_none() || block.first().is_none_or(|first| !first.span().is_none()) {
        return None;
    }
    let tokens = tokens(source.slice(heading));
    let start = tokens.iter().position(|(kind, _)| *kind == TokenKind::Word(Word::For))?;
    let &(TokenKind::Name(_), place) = tokens.get(start + 1)? else { return None };
    let place = Span { start: heading.start + place.start, end: heading.start + place.end };
    Some(Name::new(source.slice(place).trim_matches('`'), place))
}

/// A domain as it is written.
fn domain(ty: Type, program: &Program) -> String {
    let values = match ty.domain {
        Domain::Bool => "bool".to_owned(),
        Domain::Range { lo, hi } => format!("{lo}..{hi}"),
        Domain::Enum { which, .. } => program.enums[which as usize].name.to_string(),
        Domain::Int => "int".to_owned(),
    };
    let outside = match ty.outside {
        Outside::Fault => "",
        Outside::Block => " blocking",
        Outside::Wrap => " wrap",
    };
    values + outside
}

#[cfg(test)]
mod tests {
    use super::super::{rename, symbols};
    use palisade_base::Source;

    #[test]
    fn each_loop_has_a_variable_of_its_own() {
        let text = "shared a[3]: 0..3;\nprocess P[2] {\n    for i in 0..2 { a[i] = i; }\n    for i in 1..2 { a[i] = 0; }\n}\n";
        let source = Source::new("t.pal", text);
        let found = symbols(&source).expect("it is valid");
        let loops: Vec<_> = (found.symbols.iter().filter(|symbol| symbol.name == "i"))
            .map(|symbol| (symbol.detail.as_str(), symbol.uses.len()))
            .collect();
        assert_eq!(loops, [("for i in 0..2", 2), ("for i in 1..2", 1)]);
        let (places, _) = rename(&source, text.find("i in 1").expect("there"), "k").expect("it is free");
        assert_eq!(places.len(), 2);
    }
}
