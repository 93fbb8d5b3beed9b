//! What every row works with: both queues in one server, emptied before each.

use crate::side::{Pair, Side};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server;
use sqlx::postgres::PgConnection;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder of pgbench.
const BIN_VARIABLE: &str = "DUROXIDE_QUEUE_BENCH_BIN";

/// When a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// At once; the log is written to disk a moment later.
    Asynchronous,
    /// When the log is on disk.
    Synchronous,
}

impl Commit {
    /// The value of the setting `synchronous_commit`.
    pub const fn setting(self) -> &'static str {
        match self {
            Commit::Asynchronous => "off",
            Commit::Synchronous => "on",
        }
    }
}

/// Both queues, and where pgbench is.
#[derive(Debug)]
pub struct Bench {
    queues: Pair<Queue>,
    pgbench: PathBuf,
}

impl Bench {
    /// Makes a created queue, and a schema of duroxide-pg by its own migrations.
    pub async fn make() -> Bench {
        let queues =
            Pair { ours: Queue::make(Kind::Created).await, theirs: Queue::make(Kind::Reference).await };
        let bin = std::env::var_os(BIN_VARIABLE).map(PathBuf::from).unwrap_or_default();
        Bench { queues, pgbench: bin.join("pgbench") }
    }

    /// Removes both.
    pub async fn remove(self) {
        self.queues.ours.remove().await;
        self.queues.theirs.remove().await;
    }

    /// The schema of a side.
    pub fn schema(&self, side: Side) -> &str {
        self.queues.of(side).schema()
    }

    /// The program pgbench.
    pub fn pgbench(&self) -> &Path {
        &self.pgbench
    }

    /// Opens a session that finds the tables and functions of a side by their bare names. Commits are asynchronous.
    pub async fn session(&self, side: Side) -> PgConnection {
        server::open(server::options().options(self.settings(side, Commit::Asynchronous))).await
    }

    /// The settings that make a session find a side's tables and functions, and commit as told.
    pub fn settings(&self, side: Side, commit: Commit) -> [(&'static str, &str); 2] {
        [("search_path", self.schema(side)), ("synchronous_commit", commit.setting())]
    }

    /// Empties both queues and fills them the same way.
    pub async fn load(&self, statements: &[String]) {
        for side in Side::BOTH {
            let mut session = self.session(side).await;
            must(&mut session, crate::load::CLEAR).await;
            for statement in statements {
                must(&mut session, statement).await;
            }
            crate::load::settle(&mut session).await;
        }
        // No side pays for what loading the other has left to be written.
        must(&mut server::connect(None).await, "CHECKPOINT").await;
    }
}
