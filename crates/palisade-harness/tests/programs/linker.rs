//! Links Rust programs in tests, as `palisade` does when rustc starts it.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let linked = palisade_harness::rust::link(std::env::args().skip(1).collect())?;
    if linked.success { Ok(()) } else { Err("the compiler does not link the program".into()) }
}
