//! A dispatcher for the chaos test (tests/chaos.rs): one process that claims instances and work items
//! of one queue, and ends them in every way that a dispatcher may end them, dying included.
//!
//! Its orchestration is a toy whose outcome can be audited: each turn writes into the history which
//! messages it consumed and what it sent, in the same call that consumes and sends.
//!
//! Usage: `chaos_dispatcher <url> <schema> <name> <journal> <seed> <ms ahead> <instances> wild|calm`

mod instances;
mod journal;
mod payload;
mod random;
mod session;
mod work_items;

use duroxide_queue_tests::server;
use journal::{Entry, Journal};
use random::Random;
use session::Session;
use sqlx::postgres::PgConnectOptions;
use std::path::Path;
use std::time::Duration;

/// The status of a process that died by its own hand, in the middle of a transaction.
const DIED: i32 = 9;

/// What both halves of a dispatcher work with.
struct Dispatcher {
    name: String,
    random: Random,
    ahead_ms: i64,
    session: Session,
    journal: Journal,
    instances: u64,
    /// Does everything that a dispatcher may do, rather than only its work.
    is_wild: bool,
}

/// How a claim is ended.
enum End {
    /// Acknowledged.
    Ack,
    /// Acknowledged, and then once more.
    AckTwice,
    /// Acknowledged in a transaction that takes its time.
    AckInTransaction,
    /// Acknowledged in a transaction that is never committed, as the process dies.
    DieInTransaction,
    /// Acknowledged in a transaction that lasts longer than the lease.
    CommitLate,
    /// Acknowledged after the lease.
    AckLate,
    /// Renewed, then acknowledged.
    Renew,
    /// Given back.
    Abandon,
    /// Left alone.
    Forget,
}

impl Dispatcher {
    fn next_end(&mut self) -> End {
        if !self.is_wild {
            return End::Ack;
        }
        match self.random.below(100) {
            0..58 => End::Ack,
            58..63 => End::AckTwice,
            63..73 => End::AckInTransaction,
            73..74 => End::DieInTransaction,
            74..77 => End::CommitLate,
            77..83 => End::AckLate,
            83..89 => End::Renew,
            89..96 => End::Abandon,
            _ => End::Forget,
        }
    }

    /// Its clock, off by some milliseconds.
    fn now_ms(&self) -> i64 {
        server::now_ms() + self.ahead_ms
    }

    /// The length of a lease: short while there is chaos, so that many run out.
    fn lease_ms(&mut self) -> i64 {
        if self.is_wild { self.random.between(200, 1000) } else { 10_000 }
    }

    async fn pause(&mut self, first_ms: i64, last_ms: i64) {
        let ms = self.random.between(first_ms, last_ms);
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
    }

    fn violation(&self, what: String) {
        self.journal.note(&Entry::Violation { what: format!("{}: {what}", self.name) });
    }

    /// Whether a refusal is one of those that a claim that is gone explains; any other is a fault.
    fn refused(&self, call: &str, code: &str, message: String) {
        const EXPLAINED: [&str; 5] = [
            "Invalid lock token",
            "Lock token invalid, expired, or already released",
            "Lock token invalid, expired, or already acked",
            "Invalid lock token or already acked",
            "Worker queue item not found or already processed",
        ];
        if code == "P0001" && EXPLAINED.contains(&message.as_str()) {
            self.journal.note(&Entry::Refused { message });
        } else {
            self.violation(format!("{call} failed with {code}: {message}"));
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, schema, name, journal, seed, ahead_ms, instances, temper] = arguments.as_slice() else {
        panic!("8 arguments are needed, see the head of the file; these are {arguments:?}")
    };
    let mut random = Random::seeded(seed.parse().expect("a seed"));
    let mut half = |what: &str| {
        let name = format!("{name}{what}");
        let options: PgConnectOptions = url.parse().expect("a URL");
        Dispatcher {
            random: random.fork(),
            ahead_ms: ahead_ms.parse().expect("milliseconds"),
            session: Session::new(
                options.application_name(&name).options([("search_path", schema.as_str())]),
            ),
            journal: Journal::begin(Path::new(&format!("{journal}.{what}"))),
            instances: instances.parse().expect("a number of instances"),
            is_wild: temper == "wild",
            name,
        }
    };
    tokio::join!(instances::dispatch(half("i")), work_items::dispatch(half("w")));
}
