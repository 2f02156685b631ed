//! Files that were published with other tools: Memorax's for safety, Trencher's for robustness.
//!
//! What is known:
//! - Memorax 0.1.1 finds a set for burns, both Dekkers and Peterson (one locked write per process). It finds
//!   that sense_rev_bar and barnes1 need none. It runs out of time (120 s) on bakery.bound2 and
//!   the other programs of SPLASH-2.
//! - The fences of Trencher's files are those that Trencher computes, counted over all threads.

use super::{Goal, Run, Sets, read};
use crate::table::{Table, judged};
use crate::watch::{measuring, say};
use anyhow::{Context, Result, ensure};
use palisade_fences::{End, Per};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file without its extension, its sets of fences if they are known, and what the other tool does.
type Known = (&'static str, Option<Sets>, &'static str);

const MEMORAX: [Known; 10] = [
    ("bakery.bound2", Some(Sets::several(4, 4)), "out of time"),
    ("barnes1", Some(Sets::NoneNeeded), "none needed"),
    ("barnes2", None, "out of time"),
    ("burns", Some(Sets::one(2)), "2"),
    ("dekker", Some(Sets::one(2)), "2"),
    ("dekker.2", Some(Sets::one(2)), "2"),
    ("peterson", Some(Sets::one(2)), "2"),
    ("radiosity", None, "out of time"),
    ("raytrace", None, "out of time"),
    ("sense_rev_bar", Some(Sets::NoneNeeded), "none needed"),
];

const TRENCHER: [Known; 15] = [
    ("clh-lock", Some(Sets::NoneNeeded), "none needed"),
    ("dekker", Some(Sets::one(4)), "4"),
    ("dekker-correct", Some(Sets::NoneNeeded), "none needed"),
    ("lamport-fast-mutex-alg1", Some(Sets::one(6)), "6"),
    ("lock-free-stack", Some(Sets::NoneNeeded), "none needed"),
    ("mcs-lock", Some(Sets::NoneNeeded), "none needed"),
    ("nbw-w-ar-ra", Some(Sets::one(1)), "1"),
    ("nbw-w-r", Some(Sets::NoneNeeded), "none needed"),
    ("nbw-w-wr", Some(Sets::one(1)), "1"),
    ("parker", Some(Sets::one(1)), "1"),
    ("parker-correct", Some(Sets::NoneNeeded), "none needed"),
    ("peterson", Some(Sets::one(2)), "2"),
    ("pso", Some(Sets::NoneNeeded), "none needed"),
    ("simple-dekker", Some(Sets::one(2)), "2"),
    ("trf", Some(Sets::NoneNeeded), "none needed"),
];

/// Prints a table of the `.rmm` files and one of Trencher's files.
pub fn run(folders: &[PathBuf], limit: Duration) -> Result<()> {
    let mut files = Vec::new();
    for folder in folders {
        collect(folder, &mut files)?;
    }
    files.sort_unstable();
    ensure!(!files.is_empty(), "no .rmm or .txt file below the folders");
    for (extension, goal, known, tool) in [
        ("rmm", Goal::Safety, MEMORAX.as_slice(), "Memorax"),
        ("txt", Goal::Robustness, TRENCHER.as_slice(), "Trencher"),
    ] {
        let of_tool = |file: &&PathBuf| file.extension().is_some_and(|found| found == extension);
        let files: Vec<&PathBuf> = files.iter().filter(of_tool).collect();
        if files.is_empty() {
            continue;
        }
        say!("{tool}'s files: fences of all processes together for {goal:?}\n");
        let mut table = Table::new(&[
            "program",
            "fences",
            "the first set",
            "asked: one",
            "all",
            "Algorithm 2: one",
            "all",
            "seconds",
            tool,
            "",
        ]);
        for file in files {
            let name = file.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
            let known = known.iter().find(|(known, _, _)| *known == name);
            measuring(&name)?;
            let input = read(file)?;
            let run = Run::new(&input, goal, Per::Instance, limit, true)?;
            let ok = match known.and_then(|(_, sets, _)| *sets) {
                // The other tool reports one of our sets.
                Some(sets) => run.sets().contains(sets),
                None => known.is_none() || !matches!(run.findings.end, End::Unknown(_)),
            };
            let mut cells = vec![name, run.describe(), run.first_set(&input).join(", ")];
            cells.extend(run.queries());
            cells.push(format!("{:.3}", run.seconds));
            cells.push(known.map_or("-", |(_, _, theirs)| *theirs).to_owned());
            cells.push(judged(ok && run.is_quicker()));
            table.row(cells);
        }
        table.print();
        say!();
    }
    Ok(())
}

/// All files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
