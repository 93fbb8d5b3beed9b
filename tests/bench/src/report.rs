//! What a row gives: lines of the table and plots.

use crate::line::Line;
use crate::plot::Plot;

/// What a row gives.
#[derive(Debug, Default)]
pub struct Report {
    /// Lines of the table.
    pub lines: Vec<Line>,
    /// Plots, one a growing quantity.
    pub plots: Vec<Plot>,
}

impl From<Line> for Report {
    fn from(line: Line) -> Report {
        Report { lines: vec![line], plots: Vec::new() }
    }
}
