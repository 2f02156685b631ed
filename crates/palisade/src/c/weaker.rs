//! Fences and orders in C source that could be weaker.
//!
//! *What is recognised*, and what it becomes:
//! - `seq_cst` stores, including `atomic_store`, `atomic_flag_clear` and `x = v;` where `x` is atomic: release stores;
//! - exchanges whose result is not used: release stores;
//! - full fences: fences that order nothing on x86, and under PSO stores only. They still bind the compiler.
//!
//! Nothing becomes weaker than release and acquire, because the compiler may reorder what the machine does not. Loads
//! and read-modify-write operations have the same instructions whatever their order, so they are counted and left
//! alone.
//!
//! *Guarantee.* None: the caller compiles and checks the text before writing it.

use super::patch::{FilePatch, statement_range, text_of};
use super::stronger::{FENCES, Form, STORES, find, last_argument};
use super::tokens::Tokens;
use palisade_base::{Source, Span};
use palisade_fences::{Accessed, Change};
use palisade_memory::Model;
use palisade_program::written::{Block, Program, StmtKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A fence or an order that could be weaker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weakening {
    /// The file.
    pub file: String,
    /// The statement in the source.
    pub statement: Span,
    /// What the strong one costs.
    pub change: Change,
    /// The statement after the change.
    pub becomes: String,
    /// What to replace in the file.
    range: Range<usize>,
    text: String,
    /// The same as a program in which the place of a fence is still there.
    probe: String,
}

/// Which text to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rendering {
    /// The text for the user.
    Final,
    /// The one in which places are looked for.
    Probe,
}

/// Everything that could be weaker, in the order of the text. The program says which assignments are `seq_cst` stores.
pub(crate) fn weakenings(source: &Source, program: &Program, model: Model) -> Vec<Weakening> {
    let mut found = Vec::new();
    let strong = strong_stores(program);
    let names: BTreeSet<&str> = source.files().map(|(name, _)| name).collect();
    for name in names {
        let Some((start, text)) = text_of(source, name) else { continue };
        let tokens = Tokens::new(text);
        let file = File { name, start, tokens: &tokens, model };
        (0..tokens.tokens.len()).for_each(|token| found.extend(file.at(token)));
        let here = strong.iter().filter(|span| source.file(**span) == name);
        let mut known: Vec<Range<usize>> = Vec::new();
        for span in here {
            let range = span.start as usize - start..span.end as usize - start;
            if let Some(weakening) = file.assignment(range)
                && !known.contains(&weakening.range)
            {
                known.push(weakening.range.clone());
                found.push(weakening);
            }
        }
    }
    found.sort_by_key(|weakening| {
        (weakening.file != source.name(), weakening.file.clone(), weakening.range.start)
    });
    found
}

/// How many accesses of a text have an order that matters to the compiler only, and could be weaker.
pub(crate) fn for_the_compiler(source: &Source, weakenings: &[Weakening]) -> usize {
    const NAMES: [&str; 6] = [
        "atomic_load",
        "atomic_exchange",
        "atomic_flag_test_and_set",
        "atomic_compare_exchange_strong",
        "atomic_compare_exchange_weak",
        "atomic_fetch_",
    ];
    let names: BTreeSet<&str> = source.files().map(|(name, _)| name).collect();
    let in_file = |name: &str| {
        let Some((_, text)) = text_of(source, name) else { return 0 };
        let tokens = Tokens::new(text);
        let is_strong = |token: &usize| {
            let word = tokens.get(*token);
            let is_named = |name: &&str| word == *name || name.ends_with('_') && word.starts_with(*name);
            let last = || last_argument(&tokens, *token).map(|order| tokens.get(order.start));
            match word.strip_suffix("_explicit") {
                _ if tokens.get(token + 1) != "(" => false,
                Some(_) => word.starts_with("atomic_") && last() == Some("memory_order_seq_cst"),
                None if word.starts_with("__atomic_") => last() == Some("__ATOMIC_SEQ_CST"),
                None => NAMES.iter().any(is_named),
            }
        };
        let is_other =
            |token: &usize| STORES.contains(&tokens.get(*token)) || FENCES.contains(&tokens.get(*token));
        let is_weakened = |token: &usize| {
            let start = tokens.tokens[*token].range.start;
            weakenings.iter().any(|weakening| weakening.file == name && weakening.range.start == start)
        };
        let all = (0..tokens.tokens.len()).filter(|token| is_strong(token) && !is_other(token));
        all.filter(|token| !is_weakened(token)).count()
    };
    names.into_iter().map(in_file).sum()
}

/// The main file, and others that change.
pub(crate) fn weakened(source: &Source, weakenings: &[&Weakening], rendering: Rendering) -> Vec<FilePatch> {
    let mut by_file: BTreeMap<&str, Vec<&Weakening>> = BTreeMap::from([(source.name(), Vec::new())]);
    for weakening in weakenings {
        by_file.entry(&weakening.file).or_default().push(weakening);
    }
    let mut patches = Vec::new();
    for (name, mut here) in by_file {
        let Some((_, before)) = text_of(source, name) else { continue };
        here.sort_by_key(|weakening| weakening.range.start);
        let mut after = before.to_owned();
        for weakening in here.into_iter().rev() {
            after.replace_range(weakening.range.clone(), weakening.text(rendering));
        }
        patches.push(FilePatch { name: name.to_owned(), before: before.to_owned(), after });
    }
    patches
}

/// Where each of the changed parts is after all of them were made, in its file.
pub(crate) fn places_after(weakenings: &[&Weakening]) -> Vec<Range<usize>> {
    let place = |weakening: &&Weakening| {
        let before = weakenings
            .iter()
            .filter(|other| other.file == weakening.file && other.range.start < weakening.range.start);
        let (grown, shrunk) = before.fold((0, 0), |(grown, shrunk), other| {
            (grown + other.text(Rendering::Probe).len(), shrunk + other.range.len())
        });
        let start = weakening.range.start + grown - shrunk;
        start..start + weakening.text(Rendering::Probe).len()
    };
    weakenings.iter().map(place).collect()
}

impl Weakening {
    fn text(&self, rendering: Rendering) -> &str {
        match rendering {
            Rendering::Final => &self.text,
            Rendering::Probe => &self.probe,
        }
    }
}

struct File<'a> {
    name: &'a str,
    start: usize,
    tokens: &'a Tokens<'a>,
    model: Model,
}

const ACQ_REL: &str = "__atomic_thread_fence(__ATOMIC_ACQ_REL)";

impl File<'_> {
    /// What a token begins that could be weaker.
    fn at(&self, token: usize) -> Option<Weakening> {
        let (tokens, word) = (self.tokens, self.tokens.get(token));
        if word.starts_with('"') {
            return self.assembly(token);
        }
        if tokens.get(token + 1) != "(" {
            return None;
        }
        let closing = tokens.closing(token + 1)?;
        let call = token..closing + 1;
        let inside = if closing > token + 2 { self.text(&(token + 2..closing)) } else { "" };
        match word {
            "atomic_store" | "atomic_flag_clear" => {
                let text = format!("{word}_explicit({inside}, memory_order_release)");
                self.weakening(call, Change::SeqCst, text.clone(), text)
            }
            "__sync_synchronize" => {
                self.weakening(call, Change::Fence, ACQ_REL.to_owned(), ACQ_REL.to_owned())
            }
            "_mm_mfence" => {
                let probe = "_mm_sfence()".to_owned();
                let text = if self.model == Model::Pso { probe.clone() } else { ACQ_REL.to_owned() };
                self.weakening(call, Change::Fence, text, probe)
            }
            "atomic_exchange" | "atomic_exchange_explicit" | "__atomic_exchange_n" => {
                self.exchange(token, closing)
            }
            _ if STORES.contains(&word) || FENCES.contains(&word) => {
                let order = last_argument(tokens, token)?;
                let is_fence = FENCES.contains(&word);
                let text = match (self.text(&order), is_fence) {
                    ("memory_order_seq_cst", false) => "memory_order_release",
                    ("__ATOMIC_SEQ_CST", false) => "__ATOMIC_RELEASE",
                    ("memory_order_seq_cst", true) => "memory_order_acq_rel",
                    ("__ATOMIC_SEQ_CST", true) => "__ATOMIC_ACQ_REL",
                    _ => return None,
                };
                let change = if is_fence { Change::Fence } else { Change::SeqCst };
                self.weakening(order, change, text.to_owned(), text.to_owned())
            }
            _ => None,
        }
    }

    /// `"mfence"` in inline assembly.
    fn assembly(&self, token: usize) -> Option<Weakening> {
        let inside = self.tokens.get(token).trim_matches('"');
        let instruction = inside.trim_end_matches("\\t").trim_end_matches("\\n").trim_end_matches(';').trim();
        if instruction != "mfence" {
            return None;
        }
        let probe = "\"sfence\"".to_owned();
        let text = if self.model == Model::Pso { probe.clone() } else { "\"\"".to_owned() };
        self.weakening(token..token + 1, Change::Fence, text, probe)
    }

    /// An exchange that is a statement of its own.
    fn exchange(&self, token: usize, closing: usize) -> Option<Weakening> {
        let tokens = self.tokens;
        let range = tokens.tokens[token].range.clone();
        let statement = statement_range(tokens, range.clone())?;
        let before: String = tokens.text[statement.start..range.start].split_whitespace().collect();
        let is_alone = before.is_empty() || before == "(void)";
        if !is_alone || tokens.get(closing + 1) != ";" {
            return None;
        }
        let mut commas = Vec::new();
        let mut at = token + 2;
        while at < closing {
            match tokens.get(at) {
                "(" | "[" | "{" => at = tokens.closing(at)?,
                "," => commas.push(at),
                _ => {}
            }
            at += 1;
        }
        let end = commas.get(1).copied().unwrap_or(closing);
        let first = commas.first().filter(|&&comma| comma > token + 2 && comma + 1 < end)?;
        let (pointer, value) = (self.text(&(token + 2..*first)), self.text(&(first + 1..end)));
        let text = match tokens.get(token).starts_with("__") {
            true => format!("__atomic_store_n({pointer}, {value}, __ATOMIC_RELEASE)"),
            false => format!("atomic_store_explicit({pointer}, {value}, memory_order_release)"),
        };
        self.weakening(token..closing + 1, Change::Exchange, text.clone(), text)
    }

    /// `x = v;`, where `x` is atomic.
    fn assignment(&self, range: Range<usize>) -> Option<Weakening> {
        if !self.tokens.text.contains("stdatomic.h") {
            return None;
        }
        let statement = statement_range(self.tokens, range)?;
        let Form::Assignment { place, value } = find(self.tokens, statement, Accessed::Store)? else {
            return None;
        };
        let (target, stored) = (self.text(&place), self.text(&value));
        let text = format!("atomic_store_explicit(&{target}, {stored}, memory_order_release)");
        self.weakening(place.start..value.end, Change::SeqCst, text.clone(), text)
    }

    fn weakening(
        &self,
        tokens: Range<usize>,
        change: Change,
        text: String,
        probe: String,
    ) -> Option<Weakening> {
        let all = &self.tokens.tokens;
        let range = all[tokens.start].range.start..all[tokens.end - 1].range.end;
        let mut statement = statement_range(self.tokens, range.clone())?;
        statement = statement.start.min(range.start)..statement.end.max(range.end);
        let whole = self.tokens.text;
        let becomes =
            format!("{}{text}{}", &whole[statement.start..range.start], &whole[range.end..statement.end]);
        let statement = Span::new(self.start + statement.start..self.start + statement.end);
        Some(Weakening { file: self.name.to_owned(), statement, change, becomes, range, text, probe })
    }

    fn text(&self, tokens: &Range<usize>) -> &str {
        let all = &self.tokens.tokens;
        &self.tokens.text[all[tokens.start].range.start..all[tokens.end - 1].range.end]
    }
}

/// The positions of all statements.
pub(crate) fn statements(program: &Program) -> BTreeSet<Span> {
    fn collect(block: &Block, found: &mut BTreeSet<Span>) {
        found.extend(block.iter().map(|stmt| stmt.span()).filter(|span| !span.is_none()));
        block.iter().flat_map(|stmt| stmt.kind.blocks()).for_each(|block| collect(block, found));
    }
    let mut found = BTreeSet::new();
    program.templates.iter().for_each(|template| collect(&template.body, &mut found));
    program.procedures.iter().for_each(|procedure| collect(&procedure.body, &mut found));
    found
}

/// The positions of stores that a full fence follows at the same position.
fn strong_stores(program: &Program) -> BTreeSet<Span> {
    fn collect(block: &Block, found: &mut BTreeSet<Span>) {
        for pair in block.windows(2) {
            let is_strong =
                matches!(pair[0].kind, StmtKind::Assign { .. }) && pair[1].kind == StmtKind::Fence;
            if is_strong && pair[0].span() == pair[1].span() && !pair[0].span().is_none() {
                found.insert(pair[0].span());
            }
        }
        block.iter().flat_map(|stmt| stmt.kind.blocks()).for_each(|block| collect(block, found));
    }
    let mut found = BTreeSet::new();
    program.templates.iter().for_each(|template| collect(&template.body, &mut found));
    program.procedures.iter().for_each(|procedure| collect(&procedure.body, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, model: Model, expected: &[&str]) {
        let source = Source::new("t.c", format!("f() {{ {text} }}"));
        let found = weakenings(&source, &Program::default(), model);
        let becomes: Vec<&str> = found.iter().map(|weakening| weakening.becomes.as_str()).collect();
        assert_eq!(becomes, expected, "{text}");
        let all: Vec<&Weakening> = found.iter().collect();
        let probe = &weakened(&source, &all, Rendering::Probe)[0].after;
        for (weakening, place) in found.iter().zip(places_after(&all)) {
            assert_eq!(probe[place], weakening.probe, "{probe}");
        }
    }

    #[test]
    fn orders_and_fences() {
        check(
            "atomic_store(&x[f(1)], 2); r = atomic_load(&y); atomic_thread_fence(memory_order_seq_cst);",
            Model::Tso,
            &[
                "atomic_store_explicit(&x[f(1)], 2, memory_order_release);",
                "atomic_thread_fence(memory_order_acq_rel);",
            ],
        );
        check("atomic_store_explicit(&x, 1, memory_order_release);", Model::Tso, &[]);
        check("atomic_store_explicit(&x, 1, ORDER);", Model::Tso, &[]);
        check(
            "__atomic_store_n(&x, 1, __ATOMIC_SEQ_CST);",
            Model::Pso,
            &["__atomic_store_n(&x, 1, __ATOMIC_RELEASE);"],
        );
        check("__sync_synchronize();", Model::Tso, &["__atomic_thread_fence(__ATOMIC_ACQ_REL);"]);
        check("__asm__(\"mfence\" ::: \"memory\");", Model::Tso, &["__asm__(\"\" ::: \"memory\");"]);
        check("__asm__(\"mfence\" ::: \"memory\");", Model::Pso, &["__asm__(\"sfence\" ::: \"memory\");"]);
        check("__asm__(\"mfence; nop\");", Model::Tso, &[]);
    }

    #[test]
    fn exchanges() {
        let store = "atomic_store_explicit(&x, g(1, 2), memory_order_release);";
        check("atomic_exchange(&x, g(1, 2));", Model::Tso, &[store]);
        check(
            "(void)atomic_exchange_explicit(&x, 1, o);",
            Model::Tso,
            &["(void)atomic_store_explicit(&x, 1, memory_order_release);"],
        );
        check("r = atomic_exchange(&x, 1);", Model::Tso, &[]);
        check("while (atomic_exchange(&x, 1)) ;", Model::Tso, &[]);
        check(
            "if (a) __atomic_exchange_n(&x, 1, o);",
            Model::Tso,
            &["__atomic_store_n(&x, 1, __ATOMIC_RELEASE);"],
        );
    }

    #[test]
    fn for_the_compiler_only() {
        let text = "f() { atomic_load(&x); atomic_fetch_add(&x, 1); atomic_load_explicit(&x, memory_order_acquire);
                    atomic_load_explicit(&x, memory_order_seq_cst); atomic_store(&x, 1); __atomic_load_n(&x, __ATOMIC_SEQ_CST); }";
        assert_eq!(for_the_compiler(&Source::new("t.c", text), &[]), 4);
    }
}
