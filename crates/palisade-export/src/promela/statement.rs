//! Steps as statements of Promela.

use crate::expression::Condition;
use crate::step::Effect;
use crate::text::Text;
use palisade_base::Span;

/// Longer statements are written on several lines.
const LONGEST: usize = 90;

/// A step in full.
pub(super) struct Statement {
    pub conditions: Vec<Condition>,
    pub effects: Vec<String>,
    /// A statement that comes before the effects.
    pub extra: Option<String>,
    /// Whether Promela's `atomic` is around it.
    pub inside: bool,
}

impl Statement {
    /// The condition under which the step faults, if it may also have to wait: waiting must then be told from faulting.
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

    /// Whether something is more than one statement of Promela.
    fn is_compound(&self) -> bool {
        self.effects.iter().chain(&self.extra).any(|part| part.contains("; ") || part.contains("->"))
    }

    /// What must hold for the step to be possible, and what it then does. If it cannot wait, faults are assertions in it.
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
        parts.extend(self.extra.clone());
        parts.extend(self.effects.iter().cloned());
        (guard, parts)
    }

    /// Everything in one statement, which can be taken only if nothing faults or waits.
    pub fn guarded(&self) -> String {
        match self.parts() {
            (None, parts) if parts.is_empty() => "skip".to_owned(),
            (None, parts) if parts.len() == 1 && !self.is_compound() => parts[0].clone(),
            (Some(guard), parts) if parts.is_empty() => guard,
            (None, parts) if self.inside => parts.join("; "),
            (Some(guard), parts) if self.inside => format!("{guard} -> {}", parts.join("; ")),
            (None, parts) => format!("atomic {{ {} }}", parts.join("; ")),
            (Some(guard), parts) => format!("atomic {{ {guard} -> {} }}", parts.join("; ")),
        }
    }

    /// The step on its own.
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

/// Something a step does.
pub(super) fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Set(place, value) => format!("{place} = {value}"),
        Effect::More(place) => format!("{place}++"),
        Effect::Less(place) => format!("{place}--"),
        Effect::If(condition, yes, no) => {
            let list = |effects: &[Effect]| effects.iter().map(self::effect).collect::<Vec<_>>().join("; ");
            format!("if :: {condition} -> {} :: else -> {} fi", list(yes), list(no))
        }
    }
}
