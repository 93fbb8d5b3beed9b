//! The server's log: what the chaos explains, and what nothing explains.

use crate::murderer::Toll;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Levels at which each line is looked at.
const LEVELS: [&str; 4] = ["PANIC", "FATAL", "ERROR", "WARNING"];
/// Refused calls, and the ends of sessions and of the server.
const EXPLAINED: [(&str, &str); 7] = [
    ("ERROR", "P0001"),
    ("FATAL", "08006"),
    ("FATAL", "57P01"),
    ("FATAL", "57P02"),
    ("FATAL", "57P03"),
    ("WARNING", "57P01"),
    ("WARNING", "57P02"),
];

/// What the server warns of when the session that the murderer picked ended before it got there.
const DEAD_ALREADY: &str = "is not a PostgreSQL backend process";

/// What was logged.
#[derive(Debug, Default)]
pub struct Log {
    lines: BTreeMap<(String, String), usize>,
    unexplained: Vec<String>,
    recoveries: usize,
    killed_backends: usize,
}

impl Log {
    /// Reads a log whose lines begin with time, process and SQLSTATE.
    pub fn read(path: &Path) -> Log {
        let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut log = Log::default();
        for line in String::from_utf8_lossy(&text).lines() {
            log.add(line);
        }
        log
    }

    fn add(&mut self, line: &str) {
        if line.contains("not properly shut down; automatic recovery") {
            self.recoveries += 1;
        }
        if line.contains("was terminated by signal 9") {
            self.killed_backends += 1;
        } else if line.contains("was terminated by signal") || line.contains("XX000") {
            self.unexplained.push(line.to_owned());
        }
        for level in LEVELS {
            let Some((prefix, _)) = line.split_once(&format!(" {level}:  ")) else { continue };
            let code = prefix.rsplit(' ').next().unwrap_or_default();
            *self.lines.entry((level.to_owned(), code.to_owned())).or_default() += 1;
            let is_of_the_murderer = (level, code) == ("WARNING", "01000") && line.ends_with(DEAD_ALREADY);
            if !is_of_the_murderer && !EXPLAINED.contains(&(level, code)) {
                self.unexplained.push(line.to_owned());
            }
        }
    }

    /// What nothing explains.
    pub fn faults(&self, toll: &Toll) -> Vec<String> {
        let mut faults: Vec<String> =
            self.unexplained.iter().map(|line| format!("in the server's log: {line}")).collect();
        if self.killed_backends > toll.backends {
            faults.push(format!("{} backends died of signal 9", self.killed_backends));
        }
        if self.recoveries < toll.stops {
            faults.push(format!("only {} recoveries: the stops were none", self.recoveries));
        }
        faults
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server's log: {} recoveries", self.recoveries)?;
        for ((level, code), count) in &self.lines {
            write!(f, ", {count} {level} {code}")?;
        }
        Ok(())
    }
}
