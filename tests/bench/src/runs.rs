//! Runs on record: the medians of each, to tell how far two runs differ.

use crate::line::Line;
use crate::machine::Machine;
use crate::side::{Pair, median};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder of the records.
const FOLDER_VARIABLE: &str = "DUROXIDE_QUEUE_BENCH_RUNS";

/// An earlier run.
#[derive(Debug)]
pub struct Earlier {
    /// When it was and what was measured: the first line of its record.
    pub about: String,
    figures: HashMap<String, Pair<f64>>,
}

/// How far two runs differ.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Of half of the ratios, in parts of one.
    pub median: f64,
    /// Of the ratio that differs most.
    pub largest: f64,
}

impl Earlier {
    /// The latest run of this version of PostgreSQL: one of the same commit, or else any.
    pub fn find(machine: &Machine) -> Option<Earlier> {
        let mut records: Vec<PathBuf> = std::fs::read_dir(folder()?)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.to_string_lossy().ends_with(&ending(machine)))
            .collect();
        // Their names begin with the time.
        records.sort();
        let of_commit = |path: &&PathBuf| path.to_string_lossy().contains(&format!("-{}-", machine.commit));
        let record = records.iter().rev().find(of_commit).or(records.last())?;
        Some(Earlier::parse(&std::fs::read_to_string(record).ok()?))
    }

    fn parse(text: &str) -> Earlier {
        let (about, rows) = text.split_once('\n').unwrap_or((text, ""));
        let figures = rows.lines().filter_map(|row| {
            let mut cells = row.split('\t');
            let (key, ours, theirs) =
                (cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
            Some((key.to_owned(), Pair { ours, theirs }))
        });
        Earlier { about: about.trim_start_matches("# ").to_owned(), figures: figures.collect() }
    }

    /// The same line as it was then.
    pub fn line(&self, line: &Line) -> Option<Line> {
        let figures = *self.figures.get(&line.key)?;
        Some(Line { figures, ..line.clone() })
    }

    /// How far the ratios differ from those of then; `None` if there is no line in common.
    pub fn spread(&self, lines: &[Line]) -> Option<Spread> {
        let changes: Vec<f64> = lines
            .iter()
            .filter_map(|line| {
                let (now, then) = (line.ratio()?, self.line(line)?.ratio()?);
                Some((now / then).max(then / now) - 1.0)
            })
            .collect();
        let largest = changes.iter().copied().reduce(f64::max)?;
        Some(Spread { median: median(&changes), largest })
    }
}

/// Puts a run on record.
pub fn keep(machine: &Machine, lines: &[Line]) -> std::io::Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    std::fs::create_dir_all(&folder)?;
    let mut text = format!("# {}, commit {}, PostgreSQL {}\n", machine.date, machine.commit, machine.server);
    for Line { key, figures, unit, .. } in lines {
        writeln!(text, "{key}\t{}\t{}\t{unit:?}", figures.ours, figures.theirs).expect("writing to a string");
    }
    let seconds = duroxide_queue_tests::server::now_ms() / 1000;
    std::fs::write(folder.join(format!("{seconds}-{}{}", machine.commit, ending(machine))), text)
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER_VARIABLE).map(|folder| Path::new(&folder).to_owned())
}

fn ending(machine: &Machine) -> String {
    format!("-pg{}.tsv", machine.major)
}
