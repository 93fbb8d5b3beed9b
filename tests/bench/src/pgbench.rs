//! pgbench: many clients at little cost of their own, which counts on a machine with two cores.

use crate::bench::{Bench, Commit};
use crate::side::Side;
use duroxide_queue_tests::pooler::{Pooler, knows_prepared_statements};
use duroxide_queue_tests::server;
use tokio::process::Command;

/// Until when it runs.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Each client has done this many transactions.
    Transactions(u64),
    /// This many seconds are over.
    Seconds(u64),
}

/// One run of a script by some clients.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The script; it finds the functions of its side by their bare names.
    pub script: &'a str,
    /// Parameters of the statements, that are no part of the script's text.
    pub parameters: &'a [(&'a str, &'a str)],
    /// How many clients.
    pub clients: u64,
    /// Until when.
    pub until: Until,
    /// When their commits return.
    pub commit: Commit,
    /// How many backends of a pgbouncer they share, a transaction at a time; `None`: each has its own.
    pub pool: Option<usize>,
}

impl Load<'_> {
    /// Runs it on a side: how many transactions a second, the time to connect left out. `None` if not one was done.
    ///
    /// # Panics
    ///
    /// If pgbench is missing, or a client fails.
    pub async fn run(&self, bench: &Bench, side: Side) -> Option<f64> {
        let file = std::env::temp_dir().join(format!("duroxide_queue_bench_{}.sql", std::process::id()));
        std::fs::write(&file, self.script).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let settings = bench.settings(side, self.commit);
        let pooler = self.pool.map(|backends| {
            let greeting = settings.map(|(name, value)| format!("SET {name} = {value}")).join("; ");
            Pooler::start("transaction", backends, &greeting)
        });
        // Older poolers lead each call to a backend that may not know the client's prepared statement.
        let is_prepared = pooler.is_none() || knows_prepared_statements();
        let mut command = Command::new(bench.pgbench());
        command.args(["--no-vacuum", if is_prepared { "--protocol=prepared" } else { "--protocol=simple" }]);
        command.arg("--file").arg(&file);
        command.arg(format!("--client={}", self.clients)).arg(format!("--jobs={}", self.clients.min(2)));
        match self.until {
            Until::Transactions(each) => command.arg(format!("--transactions={each}")),
            Until::Seconds(seconds) => command.arg(format!("--time={seconds}")),
        };
        for (name, value) in self.parameters {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        match &pooler {
            Some(pooler) => command.arg(pooler.url()),
            None => {
                let options = settings.map(|(name, value)| format!("-c {name}={value}"));
                command.env("PGOPTIONS", options.join(" ")).arg(server::url())
            }
        };
        let output = command
            .output()
            .await
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", bench.pgbench().display()));
        std::fs::remove_file(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (out, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "pgbench on {side:?}: {complaints}");
        let done = after(&out, "number of transactions actually processed: ");
        (done > 0.0).then(|| after(&out, "tps = "))
    }
}

/// The number that stands behind a text in pgbench's report.
fn after(report: &str, label: &str) -> f64 {
    report
        .split_once(label)
        .and_then(|(_, rest)| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no \"{label}\" in what pgbench printed: {report}"))
}
