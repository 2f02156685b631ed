//! Repeats every finding from its schedule before it is reported.
//!
//! A test is a closure. If it depends on anything but its schedule (a counter that outlives the execution, a hash map
//! with a random seed, the time), an execution may show something that its schedule does not show again. That is
//! reported as what it is, and not as a failure or a violation.
//!
//! A thread that is silent for too long is reported in any case: that depends on the machine, and waiting once more
//! would take as long again.

use crate::checker::Checker;
use crate::outcome::Unrepeated;
use crate::runtime::execute;
use crate::runtime::schedule::Schedule;
use crate::runtime::session::Session;
use crate::runtime::state::{End, Failure};
use crate::runtime::strategy::{Follow, Strategy};
use crate::tally::Tally;
use palisade_monitor::Violation;
use std::sync::Arc;

impl Checker {
    /// Repeats what was found. What does not repeat is taken out and listed.
    pub(crate) fn confirm(
        &self,
        code: &Arc<dyn Fn() + Send + Sync>,
        tally: &mut Tally<'_>,
        session: &Session,
    ) {
        let again = |schedule: &Schedule| {
            let mut again = Tally::new(self, None);
            let strategy = Strategy::Follow(Follow::schedule(schedule.0.clone()));
            let ran = execute(code, strategy, Session::default(), self.setting(self.buffered()));
            again.add(&ran, None);
            (again, ran)
        };
        if let Some(failed) = tally.failed.take_if(|failed| !matches!(failed.failure, Failure::Silent(_))) {
            let (shown, ran) = again(&failed.schedule);
            match shown.failed {
                Some(shown) if shown.failure.is_like(&failed.failure) => tally.failed = Some(failed),
                other => {
                    let instead = match (other, ran.end) {
                        (Some(other), _) => other.failure.to_string(),
                        (None, End::Complete) => "the test ended without a failure".to_owned(),
                        (None, _) => "the execution ended early".to_owned(),
                    };
                    tally.unrepeated.push(Unrepeated {
                        what: failed.failure.to_string(),
                        instead,
                        schedule: failed.schedule,
                    });
                }
            }
        }
        let places = |session: &Session, violation: &Violation| {
            [violation.store, violation.previous, violation.access]
                .map(|instruction| session.place(instruction))
        };
        let mut lost = Vec::new();
        for (violation, (_, _, schedule, _)) in &tally.violations {
            let (shown, ran) = again(schedule);
            let expected = places(session, violation);
            let repeats = shown
                .violations
                .keys()
                .any(|other| other.model == violation.model && places(&ran.state.session, other) == expected);
            if !repeats {
                let what = format!("a violation of sequential consistency at {}", expected[0]);
                let instead = "the monitors reported nothing there".to_owned();
                lost.push((*violation, Unrepeated { what, instead, schedule: schedule.clone() }));
            }
        }
        for (violation, unrepeated) in lost {
            tally.violations.remove(&violation);
            tally.unrepeated.push(unrepeated);
        }
    }
}
