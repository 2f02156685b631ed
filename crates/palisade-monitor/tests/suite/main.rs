//! Tests of the monitors, linked into one binary.

mod common;
mod figures;
mod formats;
mod oracle;
mod robust;
