//! Whatever dies, nothing is lost and nothing happens twice: dispatchers are killed, their sessions and
//! backends too, the server is stopped in immediate mode and started again; when all that is over and
//! the queue has run empty, each message was consumed by exactly one committed turn.
//!
//! `DUROXIDE_QUEUE_CHAOS_SECONDS` is how long the chaos lasts, `DUROXIDE_QUEUE_CHAOS_SEED` repeats the
//! choices of an earlier run, though not its timing. `make chaos` runs the long form.
//!
//! The server is one of the test's own, started with tools/server.sh.

#[path = "chaos/audit.rs"]
mod audit;
#[path = "../src/bin/chaos_dispatcher/journal.rs"]
mod journal;
#[path = "chaos/log.rs"]
mod log;
#[path = "chaos/murderer.rs"]
mod murderer;
#[path = "../src/bin/chaos_dispatcher/payload.rs"]
mod payload;
#[path = "chaos/producer.rs"]
mod producer;
#[path = "../src/bin/chaos_dispatcher/random.rs"]
mod random;
#[path = "../src/bin/chaos_dispatcher/session.rs"]
mod session;

use audit::Audit;
use duroxide_queue_tests::outcome;
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::server::now_ms;
use log::Log;
use murderer::{Dispatchers, Temper};
use producer::Producer;
use random::Random;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The name of the queue; it needs no quoting.
const SCHEMA: &str = "chaos";
/// More than the longest lease, clock error and delay together, and the work that is left.
const DRAIN: Duration = Duration::from_secs(60);

/// How much chaos there is.
struct Plan {
    length: Duration,
    dispatchers: usize,
    instances: u64,
    stops: u32,
    killed_backends: u32,
}

impl Plan {
    fn of(seconds: u64) -> Plan {
        let is_long = seconds >= 30;
        Plan {
            length: Duration::from_secs(seconds),
            dispatchers: if is_long { 16 } else { 6 },
            instances: if is_long { 40 } else { 12 },
            stops: if is_long { 5 } else { 2 },
            killed_backends: if is_long { 4 } else { 1 },
        }
    }
}

#[tokio::test]
async fn nothing_is_lost_or_done_twice_whatever_dies() {
    let plan = Plan::of(setting("DUROXIDE_QUEUE_CHAOS_SECONDS").unwrap_or(12));
    let seed = setting("DUROXIDE_QUEUE_CHAOS_SEED").unwrap_or_else(|| now_ms().unsigned_abs());
    println!("DUROXIDE_QUEUE_CHAOS_SEED={seed}");
    let mut random = Random::seeded(seed);
    let server = Server::start().await;
    make_queue(&server).await;

    let stop = Cell::new(false);
    let mut producer = |number| Producer::new(&server, number, plan.instances, random.fork());
    let (one, other) = (producer(1), producer(2));
    let mut dispatchers = Dispatchers::start(&server, &plan, Temper::Wild, random.fork());
    let chaos = async {
        dispatchers.live_through(&plan, &server).await;
        stop.set(true);
    };
    let (one, other, ()) = tokio::join!(one.produce(&stop), other.produce(&stop), chaos);
    let batches = [one, other].concat();
    let toll = dispatchers.kill_all().await;

    let began = Instant::now();
    let calm = Plan { dispatchers: 4, ..plan };
    let mut dispatchers = Dispatchers::start(&server, &calm, Temper::Calm, random.fork());
    wait_until_empty(&server, began + DRAIN).await;
    let mut faults = dispatchers.kill_all().await.faults();
    println!("{toll}\nempty {:.1?} after the chaos", began.elapsed());

    let audit = Audit::of(&server, &batches, toll.dispatchers + plan.dispatchers).await;
    let log = Log::read(&server.folder().join("log"));
    println!("{audit}\n{log}");
    faults.extend(audit.faults);
    faults.extend(toll.faults());
    faults.extend(log.faults(&toll));
    assert!(
        faults.is_empty(),
        "DUROXIDE_QUEUE_CHAOS_SEED={seed}: {} faults; the server's files stay in {}\n{}",
        faults.len(),
        server.folder().display(),
        faults[..faults.len().min(40)].join("\n")
    );
}

async fn make_queue(server: &Server) {
    let mut session = server.connect().await;
    outcome::must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    outcome::must(&mut session, &format!("SELECT duroxide_queue.create_queue('{SCHEMA}')")).await;
}

/// Waits for the queue to run empty, up to a limit; what is left then is a matter for the audit.
async fn wait_until_empty(server: &Server, limit: Instant) {
    let mut session = server.connect().await;
    let left = format!(
        "SELECT (SELECT count(*) FROM {SCHEMA}.orchestrator_queue) + (SELECT count(*) FROM {SCHEMA}.worker_queue)"
    );
    while Instant::now() < limit && outcome::must(&mut session, &left).await != [[Some("0".to_owned())]] {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A number from the environment.
fn setting(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}
