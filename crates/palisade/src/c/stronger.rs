//! Stores and fences in C source, rewritten to be stronger.
//!
//! *Problem.* The program says that a statement of the source has a store, or a store-store fence. Where in the source
//! is it, and how is a stronger one written?
//!
//! *What is recognised* (with any order):
//! - `atomic_store_explicit`, `__atomic_store_n`, `__atomic_store`, `__c11_atomic_store`, `atomic_flag_clear_explicit`
//!   and `__atomic_clear`: the order is replaced;
//! - `__sync_lock_release(p)`: becomes a `seq_cst` store of 0;
//! - `x = v;` where `x` is not atomic: becomes an exchange, or a release store, with the compiler's builtin functions;
//! - `atomic_thread_fence`, `__atomic_thread_fence` and `__c11_atomic_thread_fence`: the order is replaced;
//! - `_mm_sfence()`, and `sfence` in inline assembly: becomes an `mfence`.
//!
//! A statement with several of these is not changed.
//!
//! *Guarantee.* None: a macro can hide what a word means, and a type may not allow the change. The caller compiles and
//! checks the text again before writing it.

use super::patch::{statement_range, text_of};
use super::tokens::Tokens;
use palisade_base::Source;
use palisade_fences::{AccessAt, Accessed, Change, FenceKind, Stronger};
use std::ops::Range;

/// A part of a file, and what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Replacement {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// How to make an access stronger, if the text shows it.
pub(crate) fn stronger(source: &Source, at: AccessAt) -> Option<Stronger> {
    let (_, found) = find_in(source, at)?;
    let weak = found.replacement(FenceKind::StoreStore).map(|_| found.change(FenceKind::StoreStore));
    found.replacement(FenceKind::Full)?;
    Some(Stronger { full: found.change(FenceKind::Full), weak })
}

/// The statement after the change.
pub(crate) fn becomes(source: &Source, at: AccessAt, kind: FenceKind) -> Option<String> {
    let (statement, found) = find_in(source, at)?;
    let Replacement { range, text } = found.replacement(kind)?;
    let whole = found.tokens.text;
    let end = statement.end.max(range.end);
    Some(format!("{}{text}{}", &whole[statement.start..range.start], &whole[range.end..end]))
}

/// The file of an access, and what to replace in it.
pub(crate) fn replacement(source: &Source, at: AccessAt, kind: FenceKind) -> Option<(&str, Replacement)> {
    let (_, found) = find_in(source, at)?;
    Some((source.file(at.span), found.replacement(kind)?))
}

fn find_in<'a>(source: &'a Source, at: AccessAt) -> Option<(Range<usize>, WrittenAccess<'a>)> {
    if at.span.is_none() {
        return None;
    }
    let (start, text) = text_of(source, source.file(at.span))?;
    let tokens = Tokens::new(text);
    let span = at.span.start as usize - start..at.span.end as usize - start;
    let statement = statement_range(&tokens, span)?;
    let form = find(&tokens, statement.clone(), at.accessed)?;
    Some((statement, WrittenAccess { tokens, form }))
}

/// An access as it is written in a statement.
struct WrittenAccess<'a> {
    tokens: Tokens<'a>,
    form: Form,
}

/// How an access is written. Numbers are tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A call whose last argument is the order.
    Ordered { order: Range<usize> },
    /// `__sync_lock_release(p)`, and its argument.
    Release { call: Range<usize>, pointer: Range<usize> },
    /// `x = v`.
    Assignment { place: Range<usize>, value: Range<usize> },
    /// `_mm_sfence`, and `"sfence"` in assembly.
    Word { token: usize },
}

impl WrittenAccess<'_> {
    fn change(&self, kind: FenceKind) -> Change {
        match (&self.form, kind) {
            (Form::Word { .. }, _) => Change::StrongerFence,
            (Form::Ordered { .. }, _) if self.is_fence() => Change::StrongerFence,
            (_, FenceKind::StoreStore) => Change::Release,
            (Form::Assignment { .. }, FenceKind::Full) => Change::Exchange,
            (_, FenceKind::Full) => Change::SeqCst,
        }
    }

    fn is_fence(&self) -> bool {
        match &self.form {
            Form::Ordered { order } => FENCES.contains(&self.function(order)),
            Form::Word { .. } => true,
            Form::Release { .. } | Form::Assignment { .. } => false,
        }
    }

    /// The function that has these tokens as an argument.
    fn function(&self, argument: &Range<usize>) -> &str {
        let call = self.tokens.around(argument.start).first().and_then(|open| open.checked_sub(1));
        call.map_or("", |call| self.tokens.get(call))
    }

    /// What to replace; `None` if the access is already as strong.
    fn replacement(&self, kind: FenceKind) -> Option<Replacement> {
        let tokens = &self.tokens;
        match (&self.form, kind) {
            (Form::Ordered { order }, kind) => {
                let old = self.text(order);
                let is_old_style = self.function(order).starts_with("__atomic");
                let new = match (kind, is_old_style) {
                    (FenceKind::Full, true) => "__ATOMIC_SEQ_CST",
                    (FenceKind::Full, false) => "memory_order_seq_cst",
                    (FenceKind::StoreStore, true) => "__ATOMIC_RELEASE",
                    (FenceKind::StoreStore, false) => "memory_order_release",
                };
                let is_weak_already = kind == FenceKind::StoreStore
                    && (self.is_fence() || old.ends_with("release") || old.ends_with("RELEASE"));
                let is_strong = old.ends_with("seq_cst") || old.ends_with("SEQ_CST");
                (!is_strong && !is_weak_already)
                    .then(|| Replacement { range: self.bytes(order), text: new.to_owned() })
            }
            (Form::Release { call, pointer }, FenceKind::Full) => {
                let text = format!("__atomic_store_n({}, 0, __ATOMIC_SEQ_CST)", self.text(pointer));
                Some(Replacement { range: self.bytes(call), text })
            }
            (Form::Assignment { place, value }, kind) => {
                let (function, order) = match kind {
                    FenceKind::Full => ("__atomic_exchange_n", "__ATOMIC_SEQ_CST"),
                    FenceKind::StoreStore => ("__atomic_store_n", "__ATOMIC_RELEASE"),
                };
                // `*p = v`, where `p` is all there is.
                let is_pointer = tokens.get(place.start) == "*" && place.len() == 2;
                let address = match is_pointer {
                    true => self.text(&(place.start + 1..place.end)).to_owned(),
                    false => format!("&{}", self.text(place)),
                };
                let text = format!("{function}({address}, {}, {order})", self.text(value));
                Some(Replacement { range: self.bytes(&(place.start..value.end)), text })
            }
            (Form::Word { token }, FenceKind::Full) => {
                let text = tokens.get(*token).replace("sfence", "mfence");
                Some(Replacement { range: self.bytes(&(*token..token + 1)), text })
            }
            (Form::Release { .. } | Form::Word { .. }, FenceKind::StoreStore) => None,
        }
    }

    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.tokens.tokens[tokens.start].range.start..self.tokens.tokens[tokens.end - 1].range.end
    }

    fn text(&self, tokens: &Range<usize>) -> &str {
        &self.tokens.text[self.bytes(tokens)]
    }
}

pub(super) const STORES: [&str; 6] = [
    "atomic_store_explicit",
    "__atomic_store_n",
    "__atomic_store",
    "__c11_atomic_store",
    "atomic_flag_clear_explicit",
    "__atomic_clear",
];
const STRONG_STORES: [&str; 2] = ["atomic_store", "atomic_flag_clear"];
pub(super) const FENCES: [&str; 3] =
    ["atomic_thread_fence", "__atomic_thread_fence", "__c11_atomic_thread_fence"];

/// The one access of a kind in a part of a text.
pub(super) fn find(tokens: &Tokens<'_>, range: Range<usize>, accessed: Accessed) -> Option<Form> {
    let first = tokens.tokens.partition_point(|token| token.range.start < range.start);
    let last = tokens.tokens.partition_point(|token| token.range.start < range.end);
    let mut found = Vec::new();
    for token in first..last {
        let word = tokens.get(token);
        match accessed {
            Accessed::Store if STORES.contains(&word) => {
                found.push(Form::Ordered { order: last_argument(tokens, token)? })
            }
            Accessed::Store if word == "__sync_lock_release" => {
                let pointer = last_argument(tokens, token)?;
                found.push(Form::Release { call: token..tokens.closing(token + 1)? + 1, pointer });
            }
            Accessed::Store if STRONG_STORES.contains(&word) => return None,
            Accessed::StoreFence if FENCES.contains(&word) => {
                found.push(Form::Ordered { order: last_argument(tokens, token)? });
            }
            Accessed::StoreFence
                if word == "_mm_sfence" || word.starts_with('"') && word.contains("sfence") =>
            {
                found.push(Form::Word { token });
            }
            _ => {}
        }
    }
    match (found.len(), accessed) {
        (1, _) => found.pop(),
        (0, Accessed::Store) => assignment(tokens, first..last),
        _ => None,
    }
}

/// The last argument of a call.
pub(super) fn last_argument(tokens: &Tokens<'_>, function: usize) -> Option<Range<usize>> {
    if tokens.get(function + 1) != "(" {
        return None;
    }
    let end = tokens.closing(function + 1)?;
    let mut start = function + 2;
    let mut at = start;
    while at < end {
        match tokens.get(at) {
            "(" | "[" | "{" => at = tokens.closing(at)?,
            "," => start = at + 1,
            _ => {}
        }
        at += 1;
    }
    (start < end).then_some(start..end)
}

/// `x = v;`, where nothing else is stored.
fn assignment(tokens: &Tokens<'_>, range: Range<usize>) -> Option<Form> {
    if range.is_empty() || tokens.get(range.end - 1) != ";" {
        return None;
    }
    let mut equals = None;
    let mut at = range.start;
    while at < range.end - 1 {
        match tokens.get(at) {
            "(" | "[" => at = tokens.closing(at)?,
            "," | "?" | "{" => return None,
            "=" => match (equals, tokens.get(at + 1)) {
                // A comparison in the value.
                (Some(_), "=") => at += 1,
                (Some(_), _) | (None, "=") => return None,
                (None, _) => equals = Some(at),
            },
            "!" | "<" | ">" if equals.is_some() && tokens.get(at + 1) == "=" => at += 1,
            _ => {}
        }
        at += 1;
    }
    let equals = equals?;
    let (place, value) = (range.start..equals, equals + 1..range.end - 1);
    let is_word = |token: usize| tokens.get(token).starts_with(|c: char| c.is_alphanumeric() || c == '_');
    // `int x = 1` is a declaration, and `x += 1` loads first.
    let is_beside = |token: usize| is_word(token) && (is_word(token - 1) || tokens.get(token - 1) == ")");
    let depth = tokens.around(place.start);
    let is_place = !place.is_empty()
        && (is_word(place.end - 1) || tokens.get(place.end - 1) == "]")
        && (is_word(place.start) || tokens.get(place.start) == "*")
        && place.clone().skip(1).all(|token| !is_beside(token))
        // `T *x = v` declares, and `*x = v` stores.
        && place.clone().skip(1).all(|token| tokens.get(token) != "*" || tokens.around(token) != depth);
    (is_place && !value.is_empty()).then_some(Form::Assignment { place, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Span;
    use palisade_fences::FenceKind::{Full, StoreStore};

    /// What the statement at the mark `@` becomes.
    #[track_caller]
    fn check(accessed: Accessed, marked: &str, kind: FenceKind, expected: Option<&str>) {
        let at = marked.find('@').expect("the text has a mark");
        let source = Source::new("t.c", marked.replace('@', ""));
        let access = AccessAt { span: Span::new(at..at + 1), accessed };
        assert_eq!(becomes(&source, access, kind).as_deref(), expected, "{marked}");
    }

    #[test]
    fn stores() {
        let store = |text: &str, kind, expected| {
            check(Accessed::Store, &format!("#include <stdatomic.h>\nf() {{ @{text} }}"), kind, expected);
        };
        let seq = "atomic_store_explicit(&x[f(1, 2)], v, memory_order_seq_cst);";
        store("atomic_store_explicit(&x[f(1, 2)], v, memory_order_release);", Full, Some(seq));
        store("atomic_store_explicit(&x[f(1, 2)], v, ORDER);", Full, Some(seq));
        store(seq, Full, None);
        store("atomic_store(&x, 1);", Full, None);
        store(
            "atomic_store_explicit(&x, 1, memory_order_relaxed);",
            StoreStore,
            Some("atomic_store_explicit(&x, 1, memory_order_release);"),
        );
        store("atomic_store_explicit(&x, 1, memory_order_release);", StoreStore, None);
        store(
            "__atomic_store_n(p, 1, __ATOMIC_RELAXED);",
            Full,
            Some("__atomic_store_n(p, 1, __ATOMIC_SEQ_CST);"),
        );
        store("__sync_lock_release(&l);", Full, Some("__atomic_store_n(&l, 0, __ATOMIC_SEQ_CST);"));
        store(
            "atomic_flag_clear_explicit(&l, memory_order_release);",
            Full,
            Some("atomic_flag_clear_explicit(&l, memory_order_seq_cst);"),
        );
        store(
            "atomic_store_explicit(&x, 1, m); atomic_store_explicit(&y, 1, m);",
            Full,
            Some("atomic_store_explicit(&x, 1, memory_order_seq_cst);"),
        );
        store("a(atomic_store_explicit(&x, 1, m), atomic_store_explicit(&y, 1, m));", Full, None);
    }

    #[test]
    fn assignments() {
        let store = |text: &str, kind, expected| {
            check(Accessed::Store, &format!("f() {{ @{text} }}"), kind, expected);
        };
        store("x = 1;", Full, Some("__atomic_exchange_n(&x, 1, __ATOMIC_SEQ_CST);"));
        store("x = 1;", StoreStore, Some("__atomic_store_n(&x, 1, __ATOMIC_RELEASE);"));
        store("*p = a == b;", Full, Some("__atomic_exchange_n(p, a == b, __ATOMIC_SEQ_CST);"));
        store("*p->q = 1;", Full, Some("__atomic_exchange_n(&*p->q, 1, __ATOMIC_SEQ_CST);"));
        store(
            "s->a[i].b = g(1, 2);",
            Full,
            Some("__atomic_exchange_n(&s->a[i].b, g(1, 2), __ATOMIC_SEQ_CST);"),
        );
        store("x = a <= b;", Full, Some("__atomic_exchange_n(&x, a <= b, __ATOMIC_SEQ_CST);"));
        for text in [
            "int x = 1;",
            "T *x = 1;",
            "x += 1;",
            "x++;",
            "x = y = 1;",
            "x = 1, y = 2;",
            "f(x);",
            "x == 1;",
            "S(a) x = 1;",
        ] {
            store(text, Full, None);
        }
        store("if (a) x = 1;", Full, None);
        check(
            Accessed::Store,
            "f() { if (a) @x = 1; }",
            Full,
            Some("__atomic_exchange_n(&x, 1, __ATOMIC_SEQ_CST);"),
        );
    }

    #[test]
    fn conditions_and_macros() {
        // A statement is as long as the part that it was asked for.
        check(
            Accessed::Store,
            "f() { while (@__atomic_store_n(&x, 1, o), y) ; }",
            Full,
            Some("__atomic_store_n(&x, 1, __ATOMIC_SEQ_CST"),
        );
        check(Accessed::Store, "#define S @x = 1;\nf() { S }", Full, None);
    }

    #[test]
    fn fences() {
        let fence = |text: &str, expected| {
            check(Accessed::StoreFence, &format!("f() {{ @{text} }}"), Full, expected);
            check(Accessed::StoreFence, &format!("f() {{ @{text} }}"), StoreStore, None);
        };
        fence("__atomic_thread_fence(__ATOMIC_ACQ_REL);", Some("__atomic_thread_fence(__ATOMIC_SEQ_CST);"));
        fence("_mm_sfence();", Some("_mm_mfence();"));
        fence(
            "__asm__ volatile(\"sfence\" ::: \"memory\");",
            Some("__asm__ volatile(\"mfence\" ::: \"memory\");"),
        );
        fence("__atomic_thread_fence(__ATOMIC_SEQ_CST);", None);
    }
}
