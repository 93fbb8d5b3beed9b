//! Whatever arguments a function gets, its backend lives, an error has a SQLSTATE that says what is
//! wrong, and a call that failed has changed nothing: in databases of four encodings.
//!
//! `DUROXIDE_QUEUE_FUZZ_CALLS` is how many calls are made in all, `DUROXIDE_QUEUE_FUZZ_SEED` repeats
//! those of an earlier run. `make fuzz` runs the long form.

#[path = "fuzz/catalogue.rs"]
mod catalogue;
#[path = "fuzz/json.rs"]
mod json;
#[path = "../src/bin/chaos_dispatcher/random.rs"]
mod random;
#[path = "fuzz/rows.rs"]
mod rows;
#[path = "fuzz/target.rs"]
mod target;
#[path = "fuzz/values.rs"]
mod values;

use duroxide_queue_tests::server;
use random::Random;
use target::{Encoding, Target};

/// Calls in `make test`.
const CALLS: u64 = 6000;
/// Calls after which the tables are emptied and filled anew.
const BATCH: u64 = 150;

#[tokio::test]
async fn hostile_arguments_in_a_utf8_database() {
    fuzz(Encoding::Utf8, 3).await;
}

#[tokio::test]
async fn hostile_arguments_in_a_latin1_database() {
    fuzz(Encoding::Latin1, 1).await;
}

#[tokio::test]
async fn hostile_arguments_in_a_euc_jp_database() {
    fuzz(Encoding::EucJp, 1).await;
}

#[tokio::test]
async fn hostile_arguments_in_a_sql_ascii_database() {
    fuzz(Encoding::SqlAscii, 1).await;
}

#[tokio::test]
async fn hostile_rows_stop_nobody_in_a_utf8_database() {
    stop_nobody(Encoding::Utf8).await;
}

#[tokio::test]
async fn hostile_rows_stop_nobody_in_a_sql_ascii_database() {
    stop_nobody(Encoding::SqlAscii).await;
}

#[tokio::test]
async fn hostile_rows_stop_nobody_in_a_euc_jp_database() {
    stop_nobody(Encoding::EucJp).await;
}

/// Puts rows into the tables that no function of ours has written: an adopted schema or a direct
/// INSERT may hold them.
async fn stop_nobody(encoding: Encoding) {
    let seed = seed();
    let mut target = Target::make(encoding, Random::seeded(seed)).await;
    let rounds = setting("DUROXIDE_QUEUE_FUZZ_CALLS").unwrap_or(CALLS) / 100;

    for round in 0..rounds {
        rows::stop_nobody(&mut target, round).await;
    }

    target.judge(seed);
    target.remove().await;
}

/// Makes so many sixths of the calls in a database of one encoding.
async fn fuzz(encoding: Encoding, sixths: u64) {
    let seed = seed();
    let calls = setting("DUROXIDE_QUEUE_FUZZ_CALLS").unwrap_or(CALLS) * sixths / 6;
    let mut target = Target::make(encoding, Random::seeded(seed)).await;

    if encoding == Encoding::Utf8 {
        target.fill().await;
        target.call_with_canaries().await;
    }
    for number in 0..calls {
        if number % BATCH == 0 {
            target.check_rows().await;
            target.fill().await;
        }
        target.call().await;
    }
    target.check_rows().await;
    if encoding == Encoding::Utf8 && calls >= CALLS / 2 {
        target.require_successes().await;
    }

    target.judge(seed);
    target.remove().await;
}

fn seed() -> u64 {
    let seed = setting("DUROXIDE_QUEUE_FUZZ_SEED").unwrap_or_else(|| server::now_ms().unsigned_abs());
    println!("DUROXIDE_QUEUE_FUZZ_SEED={seed}");
    seed
}

/// A number from the environment.
fn setting(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}
