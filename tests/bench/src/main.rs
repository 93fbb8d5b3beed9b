//! duroxide_queue against duroxide-pg's own procedures: `make bench` runs it and keeps docs/performance.md.
//!
//! Arguments select rows by how their names begin; without any, all run and the page is written.

mod bench;
mod calls;
mod line;
mod load;
mod own_cost;
mod pgbench;
mod plot;
mod probes;
mod report;
mod rows;
mod side;
mod sweep;
mod turn_script;

use bench::Bench;
use report::Report;
use std::time::Instant;

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let rows: Vec<_> = rows::all()
        .into_iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|name| row.name().starts_with(name.as_str())))
        .collect();
    assert!(!rows.is_empty(), "no row's name begins with any of {wanted:?}");
    let bench = Bench::make().await;
    let mut report = Report::default();
    for row in rows {
        let begin = Instant::now();
        let Report { lines, plots } = row.run(&bench).await;
        println!("{} ({:.0} s)", row.name(), begin.elapsed().as_secs_f64());
        for line in &lines {
            let ratio = line.ratio().map_or_else(String::new, |ratio| format!(", {}x", line::number(ratio)));
            let (ours, theirs) = (line.unit.show(line.figures.ours), line.unit.show(line.figures.theirs));
            println!(
                "  {}: ours {ours}, theirs {theirs}{ratio}; goal {} {}",
                line.what,
                line.goal(),
                line.verdict()
            );
        }
        report.lines.extend(lines);
        report.plots.extend(plots);
    }
    bench.remove().await;
}
