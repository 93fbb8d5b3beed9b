//! docs/performance.md: the part between two marks is the bench's, the rest is kept by hand.

use crate::line::{Line, number};
use crate::machine::Machine;
use crate::report::Report;
use crate::runs::Earlier;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/performance.md";
const PLOTS: &str = "docs/performance";
const BEGIN: &str = "<!-- written by make bench -->\n";
const END: &str = "<!-- end of what make bench writes -->\n";

/// Replaces the bench's part of the page, and the plots. The current folder is the checkout.
pub fn write(report: &Report, machine: &Machine, earlier: Option<&Earlier>) -> std::io::Result<()> {
    let old = std::fs::read_to_string(PAGE)?;
    let (before, rest) = old.split_once(BEGIN).ok_or_else(|| lost(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| lost(END))?;
    std::fs::write(PAGE, format!("{before}{BEGIN}{}{END}{after}", part(report, machine, earlier)))?;
    std::fs::create_dir_all(PLOTS)?;
    for plot in &report.plots {
        std::fs::write(Path::new(PLOTS).join(format!("{}.svg", plot.file)), plot.svg())?;
    }
    Ok(())
}

fn lost(mark: &str) -> std::io::Error {
    std::io::Error::other(format!("{PAGE} has no line {}", mark.trim_end()))
}

/// What stands between the marks.
fn part(report: &Report, machine: &Machine, earlier: Option<&Earlier>) -> String {
    let mut text = String::new();
    let goals = report.lines.iter().filter_map(Line::reached);
    let (all, reached) = goals.fold((0, 0), |(all, reached), is| (all + 1, reached + usize::from(is)));
    let Machine { date, commit, server, hardware, settings, .. } = machine;
    write!(
        text,
        "\n{reached} of {all} goals reached: {date}, commit {commit}, PostgreSQL {server}, {hardware}. Server settings: \
         {settings}.\n\n"
    )
    .expect("writing to a string");
    text.push_str(&table(&report.lines, earlier));
    text.push_str(&difference(&report.lines, earlier));
    text.push_str("\n## As it grows\n");
    for plot in &report.plots {
        let (title, x, file) = (&plot.title, &plot.x, plot.file);
        write!(text, "\n![{title}, over the {x}: both lines](performance/{file}.svg)\n")
            .expect("writing to a string");
    }
    text.push('\n');
    text
}

fn table(lines: &[Line], earlier: Option<&Earlier>) -> String {
    let mut text = String::from(
        "| what | ours | theirs | ratio | run before | goal | reached |\n|---|--:|--:|--:|--:|---|---|\n",
    );
    for line in lines {
        let ratio =
            |line: &Line| line.ratio().map_or_else(String::new, |ratio| format!("{}x", number(ratio)));
        let before = earlier.and_then(|earlier| earlier.line(line));
        // Where there is no ratio, ours stands for itself.
        let before = before.map_or_else(String::new, |before| {
            if before.ratio().is_some() { ratio(&before) } else { before.unit.show(before.figures.ours) }
        });
        let (ours, theirs) = (line.unit.show(line.figures.ours), line.unit.show(line.figures.theirs));
        writeln!(
            text,
            "| {} | {ours} | {theirs} | {} | {before} | {} | {} |",
            line.what,
            ratio(line),
            line.goal(),
            line.verdict()
        )
        .expect("writing to a string");
    }
    text
}

fn difference(lines: &[Line], earlier: Option<&Earlier>) -> String {
    let Some((earlier, spread)) = earlier.and_then(|earlier| Some((earlier, earlier.spread(lines)?))) else {
        return "\nThere is no run before this one to compare it with.\n".to_owned();
    };
    format!(
        "\nThe run before ({}): half of the ratios differ from it by {:.0} % or less, the one that differs most by {:.0} %.\n",
        earlier.about,
        spread.median * 100.0,
        spread.largest * 100.0
    )
}
