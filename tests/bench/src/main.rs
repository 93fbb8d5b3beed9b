//! duroxide_queue against duroxide-pg's own procedures: `make bench` runs it and keeps docs/performance.md.
//!
//! Arguments select rows by how their names begin; without any, all run and the page is written.

mod bench;
mod calls;
mod line;
mod load;
mod machine;
mod own_cost;
mod page;
mod pgbench;
mod plot;
mod probes;
mod report;
mod rows;
mod runs;
mod side;
mod sweep;
mod turn_script;

use bench::Bench;
use line::{Line, number};
use machine::Machine;
use report::Report;
use runs::Earlier;
use std::time::Instant;

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let rows: Vec<_> = rows::all()
        .into_iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|name| row.name().starts_with(name.as_str())))
        .collect();
    assert!(!rows.is_empty(), "no row's name begins with any of {wanted:?}");
    // The commit may be another one at the end of the run.
    let machine = Machine::look().await;
    let bench = Bench::make().await;
    let mut report = Report::default();
    for row in rows {
        let begin = Instant::now();
        let Report { lines, plots } = row.run(&bench).await;
        println!("{} ({:.0} s)", row.name(), begin.elapsed().as_secs_f64());
        lines.iter().for_each(print);
        report.lines.extend(lines);
        report.plots.extend(plots);
    }
    bench.remove().await;
    // Some rows alone are no run to show, nor one to compare with.
    if wanted.is_empty() {
        publish(&report, &machine).unwrap_or_else(|error| panic!("the figures stand above, but: {error}"));
    }
}

fn print(line: &Line) {
    let ratio = line.ratio().map_or_else(String::new, |ratio| format!(", {}x", number(ratio)));
    let (ours, theirs) = (line.unit.show(line.figures.ours), line.unit.show(line.figures.theirs));
    let goal = if line.reached().is_some() {
        format!("; goal {}: {}", line.goal(), line.verdict().trim_matches('*'))
    } else {
        String::new()
    };
    println!("  {}: ours {ours}, theirs {theirs}{ratio}{goal}", line.what);
}

/// Writes the page, and puts the run on record.
fn publish(report: &Report, machine: &Machine) -> std::io::Result<()> {
    let earlier = Earlier::find(machine);
    page::write(report, machine, earlier.as_ref())?;
    runs::keep(machine, &report.lines)
}
