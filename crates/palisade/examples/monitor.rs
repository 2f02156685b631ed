//! What could TSO and PSO have done with a recorded execution?
//!
//! `cargo run -p palisade --example monitor`

use palisade::memory::Interlocked;
use palisade::monitor::{Monitor, TraceReader};

const TRACE: &str = "\
p store x  a.c:3 x = 1
p load  y  a.c:4 r1 = y
q store y  b.c:3 y = 1
q load  x  b.c:4 r2 = x
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut monitor = Monitor::new(Interlocked::WholeBuffer);
    let mut reader = TraceReader::new(TRACE.as_bytes())?;
    reader.read(|event| monitor.take(event))?;
    for (violation, seen) in monitor.violations().sorted() {
        let name = |instruction| reader.instructions().name(instruction);
        println!(
            "{}, {} times: `{}` can still be buffered while another thread, having passed `{}`, makes the access `{}`",
            violation.model.name().to_uppercase(),
            seen.count,
            name(violation.store),
            name(violation.previous),
            name(violation.access)
        );
    }
    Ok(())
}
