//! Litmus tests in Rust: the tests of [`litmus`](super::litmus) in another language, with the same outcomes.
//!
//! What each thread observes goes through variables, and the shared variables are static; or else both are on the heap, in
//! an `Arc` and in what threads return.

use super::Text;
use super::litmus::{Action, Litmus, Order, fetching, results};
use palisade_program::written::Rmw;

/// What has consume order in C acquires in Rust. Neither is an instruction on these machines.
fn name(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "Relaxed",
        Order::Consume | Order::Acquire => "Acquire",
        Order::Release => "Release",
        Order::AcqRel => "AcqRel",
        Order::SeqCst => "SeqCst",
    }
}

impl Litmus {
    /// The test in Rust.
    pub fn rust(&self) -> String {
        let results = results(&self.threads);
        let (variables, threads) = (self.volatile.len(), self.threads.len());
        let mut text = Text::default();
        text.line("#![allow(non_upper_case_globals, dead_code, unused_imports)]");
        text.line("use std::sync::{Arc, atomic::{AtomicI32, Ordering::*, fence}};");
        text.line("use std::thread;");
        for output in 0..variables + results.len() {
            text.line(format!("static mut o{output}: i64 = 0;"));
        }
        text.open("struct Shared");
        (0..variables).for_each(|variable| text.line(format!("x{variable}: AtomicI32,")));
        text.close("");
        let zero = |variable: usize| format!("x{variable}: AtomicI32::new(0)");
        let fields: Vec<String> = (0..variables).map(zero).collect();
        let initial = format!("Shared {{ {} }}", fields.join(", "));
        if self.at_once {
            text.line(format!("static SHARED: Shared = {initial};"));
            for (thread, at) in &results {
                text.line(format!("static mut result{thread}_{at}: i32 = 0;"));
            }
        }
        for (thread, actions) in self.threads.iter().enumerate() {
            let own: Vec<String> =
                results.iter().filter(|(of, _)| *of == thread).map(|(_, at)| format!("r{at}")).collect();
            let returned = if self.at_once { 0 } else { own.len() };
            text.open(format!("fn thread{thread}(shared: &Shared) -> [i32; {returned}]"));
            for (at, action) in actions.iter().enumerate() {
                action_in_rust(&mut text, at, *action);
            }
            if self.at_once {
                own.iter().for_each(|r| text.line(format!("unsafe {{ result{thread}_{} = {r} }};", &r[1..])));
            }
            text.line(format!("[{}]", if self.at_once { String::new() } else { own.join(", ") }));
            text.close("");
        }
        text.open("fn main()");
        let shared = if self.at_once { "&SHARED".to_owned() } else { format!("Arc::new({initial})") };
        text.line(format!("let shared = {shared};"));
        for thread in 0..threads {
            text.line(format!(
                "let t{thread} = {{ let shared = shared.clone(); thread::spawn(move || thread{thread}(&shared)) }};"
            ));
        }
        (0..threads).for_each(|thread| text.line(format!("let t{thread} = t{thread}.join().unwrap();")));
        for variable in 0..variables {
            text.line(format!("unsafe {{ o{variable} = shared.x{variable}.load(Relaxed).into() }};"));
        }
        for (index, (thread, at)) in results.iter().enumerate() {
            let place = results.iter().filter(|(of, _)| of == thread).position(|(_, other)| other == at);
            let value = match self.at_once {
                true => format!("result{thread}_{at}"),
                false => format!("t{thread}[{}]", place.expect("it is one of them")),
            };
            text.line(format!("unsafe {{ o{} = {value}.into() }};", variables + index));
        }
        text.close("");
        text.text
    }
}

fn action_in_rust(text: &mut Text, at: usize, action: Action) {
    let result = match action {
        Action::Store(variable, value, order) => {
            return text.line(format!("shared.x{variable}.store({value}, {});", name(order)));
        }
        // A relaxed fence is an error in Rust.
        Action::Fence(Order::Relaxed) => return,
        Action::Fence(order) => return text.line(format!("fence({});", name(order))),
        Action::Load(variable, order) => format!("shared.x{variable}.load({})", name(order)),
        Action::Update(Rmw::Cas, variable, value, expected, order) => {
            let exchange = if at.is_multiple_of(2) { "compare_exchange" } else { "compare_exchange_weak" };
            let (order, failure) = (name(order), name(order.after_failure()));
            format!("shared.x{variable}.{exchange}({expected}, {value}, {order}, {failure}).is_ok() as i32")
        }
        Action::Update(rmw, variable, value, _, order) => {
            let function = fetching(rmw).unwrap_or("swap");
            format!("shared.x{variable}.{function}({value}, {})", name(order))
        }
    };
    text.line(format!("let r{at} = {result};"));
}
