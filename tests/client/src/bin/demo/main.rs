//! A real workflow on a queue of duroxide_queue, whose runtime is killed in the middle.
//!
//! `demo` tells the story against the server that `DUROXIDE_QUEUE_TEST_URL` names, and exits with
//! a status other than 0 unless every step came out right. `demo worker NAME` is the runtime that
//! it starts, kills and starts again.

mod checks;
mod runtime;
mod stage;
mod story;
mod terminal;
mod watch;
mod worker;

use sqlx::postgres::PgDatabaseError;
use std::error::Error;
use std::process::ExitCode;

/// Whatever ends the demo early: it is printed, and never told apart.
type Failure = Box<dyn Error + Send + Sync>;

/// The queue that the demo makes.
const QUEUE: &str = "demo";
/// The instance that it runs.
const ORDER: &str = "order-1001";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [] => story::tell().await,
        ["worker", name] => worker::run(name).await.map(|()| true),
        _ => Err("usage: demo, or demo worker NAME".into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            if let Some(hint) = hint(&error) {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

/// What the server advises, if it is the server that complains.
fn hint(error: &Failure) -> Option<&str> {
    let error = error.downcast_ref::<sqlx::Error>()?.as_database_error()?;
    error.try_downcast_ref::<PgDatabaseError>()?.hint()
}
