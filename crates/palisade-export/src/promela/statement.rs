//! Steps as statements of Promela.

use crate::expression::Condition;
use crate::step::Effect;
use crate::text::Text;
use palisade_base::Span;

/// Longer statements are written on several lines.
const LONGEST: usize = 90;

/// A piece of Promela.
#[derive(Clone)]
pub(super) struct Code {
    pub text: String,
    size: Size,
}

/// The number of statements in a piece of Promela.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    One,
    Several,
}

impl Code {
    /// One statement, which Promela executes as one step.
    pub fn one(text: impl Into<String>) -> Code {
        Code { text: text.into(), size: Size::One }
    }

    /// Several statements.
    pub fn several(text: String) -> Code {
        Code { text, size: Size::Several }
    }

    /// The same piece with other text around it.
    pub fn map(self, text: impl FnOnce(String) -> String) -> Code {
        Code { text: text(self.text), size: self.size }
    }
}

/// A complete step.
pub(super) struct Statement {
    pub conditions: Vec<Condition>,
    pub effects: Vec<Code>,
    /// A statement before the effects.
    pub extra: Option<Code>,
    /// Whether Promela's `atomic` is around it.
    pub inside: bool,
}

impl Statement {
    /// The condition under which the step faults, if it may also have to wait. Waiting must then be
    /// distinguished from faulting.
    pub fn fault_before_waiting(&self) -> Option<String> {
        if !self.is_mixed() {
            return None;
        }
        let mut passed: Vec<String> = Vec::new();
        let mut faults = Vec::new();
        for condition in &self.conditions {
            match condition {
                Condition::Must(text, _) => {
                    let mut all = passed.clone();
                    all.push(format!("!({text})"));
                    faults.push(all.join(" && "));
                    passed.push(format!("({text})"));
                }
                Condition::May(text) => passed.push(format!("({text})")),
            }
        }
        Some(match &faults[..] {
            [one] => one.clone(),
            many => many.iter().map(|fault| format!("({fault})")).collect::<Vec<_>>().join(" || "),
        })
    }

    fn is_mixed(&self) -> bool {
        let must = |condition: &Condition| matches!(condition, Condition::Must(..));
        self.conditions.iter().any(must) && !self.conditions.iter().all(must)
    }

    /// Whether some part is more than one statement of Promela.
    fn is_compound(&self) -> bool {
        self.effects.iter().chain(&self.extra).any(|part| part.size == Size::Several)
    }

    /// The condition under which the step is possible, and its parts. If the step cannot wait, faults are
    /// assertions among the parts.
    fn parts(&self) -> (Option<String>, Vec<String>) {
        let mut parts: Vec<String> = Vec::new();
        let mut guard: Vec<&str> = Vec::new();
        for condition in &self.conditions {
            match condition {
                Condition::Must(text, _) if !self.is_mixed() => parts.push(format!("assert({text})")),
                Condition::Must(text, _) | Condition::May(text) => guard.push(text),
            }
        }
        let guard = match &guard[..] {
            [] => None,
            [one] => Some((*one).to_owned()),
            many => Some(many.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join(" && ")),
        };
        parts.extend(self.extra.iter().chain(&self.effects).map(|part| part.text.clone()));
        (guard, parts)
    }

    /// Whether the step does nothing and is always possible.
    pub fn is_skip(&self) -> bool {
        self.conditions.is_empty() && self.extra.is_none() && self.effects.is_empty()
    }

    /// Everything in one statement, which is possible only if nothing faults or waits.
    pub fn guarded(&self) -> String {
        match self.parts() {
            _ if self.is_skip() => "skip".to_owned(),
            (None, parts) if parts.len() == 1 && !self.is_compound() => parts[0].clone(),
            (Some(guard), parts) if parts.is_empty() => guard,
            (None, parts) if self.inside => parts.join("; "),
            (Some(guard), parts) if self.inside => format!("{guard} -> {}", parts.join("; ")),
            (None, parts) => format!("atomic {{ {} }}", parts.join("; ")),
            (Some(guard), parts) => format!("atomic {{ {guard} -> {} }}", parts.join("; ")),
        }
    }

    /// Writes the step as a separate statement.
    pub fn write(&self, span: Span, text: &mut Text<'_>) {
        match self.fault_before_waiting() {
            None => {
                let line = self.guarded();
                if line.chars().count() <= LONGEST {
                    return text.commented(&format!("{line};"), span);
                }
                let (guard, parts) = self.parts();
                let lines: Vec<String> = guard.into_iter().chain(parts).collect();
                if !self.inside {
                    text.commented("atomic {", span);
                    text.indent();
                }
                lines.iter().for_each(|line| text.commented(&format!("{line};"), span));
                if !self.inside {
                    text.dedent();
                    text.line("};");
                }
            }
            Some(fault) => {
                text.line("if");
                text.commented(&format!(":: {fault} -> assert(false)"), span);
                text.line(&format!(":: {}", self.guarded()));
                text.line("fi;");
            }
        }
    }
}

/// An effect of a step.
pub(super) fn effect(effect: &Effect) -> Code {
    match effect {
        Effect::Set(place, value) => Code::one(format!("{place} = {value}")),
        Effect::Increment(place) => Code::one(format!("{place}++")),
        Effect::Decrement(place) => Code::one(format!("{place}--")),
        Effect::If(condition, yes, no) => {
            let list = |effects: &[Effect]| sequence(effects.iter().map(self::effect).collect()).text;
            Code::several(format!("if :: {condition} -> {} :: else -> {} fi", list(yes), list(no)))
        }
    }
}

/// Pieces of Promela, one after the other.
pub(super) fn sequence(parts: Vec<Code>) -> Code {
    let size = match &parts[..] {
        [one] => one.size,
        _ => Size::Several,
    };
    Code { text: parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("; "), size }
}
