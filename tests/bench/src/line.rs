//! A line of the table: what was measured on each side, what was to be reached, and whether it was.

use crate::side::Pair;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds: less is better.
    Milliseconds,
    /// Things a second: more is better.
    PerSecond,
    /// How many times as much as at the start, or as without the load.
    Times,
    /// A number of things, told in the line's text.
    Count,
}

/// What has to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Ours is this many times as good as theirs; the second is what would be better still.
    Ratio(f64, Option<f64>),
    /// Ours is this at most.
    AtMost(f64),
    /// Ours is this at least.
    AtLeast(f64),
    /// None: the line explains another.
    None,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// What names it in the records of runs; it never changes.
    pub key: String,
    /// What was measured.
    pub what: String,
    /// The median of each side.
    pub figures: Pair<f64>,
    /// What the figures count.
    pub unit: Unit,
    /// What has to be reached.
    pub goal: Goal,
}

impl Line {
    /// A line of that key.
    pub fn new(key: &str, what: &str, figures: Pair<f64>, unit: Unit, goal: Goal) -> Line {
        Line { key: key.to_owned(), what: what.to_owned(), figures, unit, goal }
    }

    /// How many times as good as theirs ours is, where that can be said.
    pub fn ratio(&self) -> Option<f64> {
        let Pair { ours, theirs } = self.figures;
        match self.unit {
            Unit::Milliseconds => Some(theirs / ours),
            Unit::PerSecond => (theirs > 0.0).then(|| ours / theirs),
            Unit::Times | Unit::Count => None,
        }
    }

    /// What stands in the column of the goal.
    pub fn goal(&self) -> String {
        match self.goal {
            Goal::Ratio(least, None) => format!("{}x", number(least)),
            Goal::Ratio(least, Some(stretch)) => format!("{}x, stretch {}x", number(least), number(stretch)),
            Goal::AtMost(most) => format!("at most {}", self.unit.show(most)),
            Goal::AtLeast(least) => format!("at least {}", self.unit.show(least)),
            Goal::None => String::new(),
        }
    }

    /// Whether the goal is reached; `None` without a goal.
    pub fn reached(&self) -> Option<bool> {
        match self.goal {
            Goal::Ratio(least, _) => Some(self.ratio().is_some_and(|ratio| ratio >= least)),
            Goal::AtMost(most) => Some(self.figures.ours <= most),
            Goal::AtLeast(least) => Some(self.figures.ours >= least),
            Goal::None => None,
        }
    }

    /// What stands in the last column.
    pub fn verdict(&self) -> &'static str {
        match (self.reached(), self.goal) {
            (Some(true), Goal::Ratio(_, Some(stretch))) if self.ratio() >= Some(stretch) => {
                "yes, stretch too"
            }
            (Some(true), _) => "yes",
            (Some(false), _) => "**no**",
            (None, _) => "",
        }
    }
}

impl Unit {
    /// A figure with its unit.
    pub fn show(self, figure: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{} ms", number(figure)),
            Unit::PerSecond => format!("{}/s", number(figure)),
            Unit::Times => format!("{}x", number(figure)),
            Unit::Count => number(figure),
        }
    }
}

/// A number with about three digits that count, and no more.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == v.trunc() || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let mut plain = format!("{value:.decimals$}");
    if plain.contains('.') {
        plain.truncate(plain.trim_end_matches('0').trim_end_matches('.').len());
    }
    let (sign, rest) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, ""), |(whole, fraction)| (whole, fraction));
    let grouped: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).expect("digits")).collect();
    let whole = grouped.join(",");
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}
