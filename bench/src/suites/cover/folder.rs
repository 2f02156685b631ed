//! The `.rmm` files below some folders, compared with the figures of other tools. The files are run unchanged
//! and, where a comparison exists, with any number of each process.

use super::{Run, headings, parse, row};
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result, ensure};
use palisade_engine::Threads;
use palisade_syntax::Language;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is known about a file.
struct Known {
    name: &'static str,
    /// The verdict of those tools that give one.
    verdict: Option<SafetyVerdict>,
    /// The number of configurations that a discarded first implementation of our search needed.
    prototype: Option<u64>,
    /// The number of configurations that Dual-TSO generates, with or without first removing registers,
    /// whichever is smaller.
    dual_tso: Option<u64>,
}

const fn known(
    name: &'static str,
    verdict: Option<SafetyVerdict>,
    prototype: Option<u64>,
    dual_tso: Option<u64>,
) -> Known {
    Known { name, verdict, prototype, dual_tso }
}

const SAFE: Option<SafetyVerdict> = Some(SafetyVerdict::Safe);
const UNSAFE: Option<SafetyVerdict> = Some(SafetyVerdict::Unsafe);

/// The files unchanged.
const FIXED: [Known; 41] = [
    known("bakery.bound2", UNSAFE, Some(126), Some(11_085)),
    known("barnes1", SAFE, None, Some(25_374)),
    known("barnes2", None, None, None),
    known("burns", UNSAFE, None, Some(118)),
    known("burns_4", UNSAFE, Some(66), Some(126_701)),
    known("clh", SAFE, Some(2_829), None),
    known("dekker", UNSAFE, Some(11), Some(1_981)),
    known("dekker.2", UNSAFE, None, Some(1_400)),
    known("dekker_simple", UNSAFE, None, Some(56)),
    known("dijkstra", UNSAFE, Some(758), Some(5_138)),
    known("iriw", SAFE, None, Some(450)),
    known("iriw_2_2_2_2", SAFE, None, Some(43_088)),
    known("iriw_3_3_3_3", SAFE, Some(127), Some(2_388_648)),
    known("isa2", SAFE, None, Some(383)),
    known("isa2_3_3_3", SAFE, Some(78), Some(3_670_068)),
    known("lamport_fast", UNSAFE, Some(611), None),
    known("lamport_fast_3", UNSAFE, Some(1_259), Some(536_814)),
    known("lb", SAFE, None, Some(136)),
    known("lb_1_2", SAFE, None, Some(1_135)),
    known("lb_3_3", SAFE, None, Some(467_218)),
    known("mp", SAFE, None, Some(38)),
    known("mp_2_2", SAFE, None, Some(767)),
    known("mp_4_4", SAFE, Some(26), Some(118_122)),
    known("nbw_w_wr", SAFE, None, Some(296)),
    known("peterson", UNSAFE, Some(62), Some(4_775)),
    known("peterson_single", UNSAFE, Some(61), Some(3_652)),
    known("radiosity", None, None, None),
    known("raytrace", None, None, None),
    known("rwc", UNSAFE, None, Some(169)),
    known("rwc_1_2_2", UNSAFE, Some(23), Some(2_841)),
    known("sb", UNSAFE, None, Some(67)),
    known("sb_2_3", UNSAFE, None, Some(6_353)),
    known("sb_3_3", UNSAFE, None, Some(25_226)),
    known("sb_4_4", UNSAFE, Some(27), Some(356_390)),
    known("sense_rev_bar", SAFE, Some(52), Some(980)),
    known("szymanski", UNSAFE, Some(258), Some(3_334)),
    known("ticket_spin_lock_1_2_finite", SAFE, None, Some(6_484)),
    known("w+rwc", UNSAFE, None, Some(264)),
    known("w+rwc_1_1_2", UNSAFE, Some(24), Some(1_091)),
    known("wrc", SAFE, None, Some(249)),
    known("wrc_1_1_2", SAFE, None, Some(1_174)),
];

/// The files with any number of each process.
const ANY: [Known; 9] = [
    known("iriw", SAFE, Some(47), Some(570)),
    known("isa2", SAFE, Some(52), Some(1_125)),
    known("lb", SAFE, None, Some(398)),
    known("mp", SAFE, Some(11), Some(130)),
    known("nbw_w_wr", SAFE, None, Some(2_945)),
    known("rwc", UNSAFE, Some(27), Some(240)),
    known("sb", UNSAFE, Some(12), Some(132)),
    known("w+rwc", UNSAFE, Some(23), Some(643)),
    known("wrc", SAFE, Some(31), Some(468)),
];

/// Prints a table of the unchanged files and one for any number of processes.
pub fn run(folders: &[PathBuf], limit: Duration) -> Result<()> {
    let mut files = Vec::new();
    for folder in folders {
        collect(folder, &mut files)?;
    }
    files.sort_unstable();
    ensure!(!files.is_empty(), "no .rmm file below the folders");
    say!("\nThe unchanged files\n");
    table(&files, Threads::Declared, &FIXED, limit)?;
    say!("\nAny number of each process\n");
    files.retain(|file| ANY.iter().any(|known| known.name == stem(file)));
    table(&files, Threads::Any, &ANY, limit)
}

fn table(files: &[PathBuf], threads: Threads, known: &[Known], limit: Duration) -> Result<()> {
    let mut table = Table::new(&headings(&["program"], &["prototype", "Dual-TSO", ""]));
    let mut ratios = Vec::new();
    for file in files {
        let name = stem(file);
        measuring(&name)?;
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let run = Run::new(&parse(Language::Rmm, &name, text)?, threads, limit);
        let known = known.iter().find(|known| known.name == name);
        let prototype = known.and_then(|known| known.prototype);
        let ok = match known.and_then(|known| known.verdict) {
            Some(verdict) => run.verdict == verdict,
            None => run.is_decided(),
        };
        let ok = ok && prototype.is_none_or(|prototype| 10 * run.configurations <= 11 * prototype);
        if let (Some(prototype), true) = (prototype, run.is_decided()) {
            // One is added because a search may need no configurations.
            ratios.push((run.configurations + 1) as f64 / (prototype + 1) as f64);
        }
        let number = |number: Option<u64>| number.map_or("-".to_owned(), thousands);
        let others = vec![number(prototype), number(known.and_then(|known| known.dual_tso)), judged(ok)];
        table.row(row(vec![name], &run, others));
    }
    table.print();
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let rows = ratios.len();
        say!(
            "\nconfigurations relative to the prototype, geometric mean of {rows} rows: {mean:.2}  {}",
            judged(mean < 1.0)
        );
    }
    Ok(())
}

/// All `.rmm` files below a folder.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rmm") {
            files.push(path);
        }
    }
    Ok(())
}

/// The name of a file without `.rmm`.
pub fn stem(file: &Path) -> String {
    file.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned())
}
