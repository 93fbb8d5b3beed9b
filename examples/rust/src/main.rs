//! A worker for a duroxide_queue: it runs an orchestration and an activity (greet.rs) until it is told to stop.
//!
//! ```sh
//! DATABASE_URL=postgres://postgres@localhost/mydb cargo run
//! ```
//!
//! Everything that has to survive a crash is in the database. This process only holds leases: the right to be the only
//! one who works on something, for LEASE_SECONDS. Kill it, and whoever comes when the lease has ended goes on.

mod greet;
mod queue;

use queue::{Queue, int, jsonb, now, text};
use serde_json::{Value, json};
use std::env::var;
use std::error::Error;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

/// A poll that finds nothing writes nothing: poll as often as you like.
const POLL: Duration = Duration::from_millis(200);

struct Worker {
    queue: Queue,
    lease_seconds: i64,
    work: Duration,
    stop: watch::Receiver<bool>,
}

impl Worker {
    /// Claims an instance that has messages, and acknowledges the turn. False if there is none.
    async fn take_turn(&self) -> Result<bool, Box<dyn Error>> {
        let claim = [int(now()), int(self.lease_seconds * 1000)];
        let Some(turn) = self.queue.call("fetch_orchestration_item($1, $2)", &claim).await? else {
            return Ok(false);
        };
        let (instance, execution): (String, i64) =
            (turn.get("out_instance_id"), turn.get("out_execution_id"));
        let (history, messages): (Value, Value) = (turn.get("out_history"), turn.get("out_messages"));
        let token: String = turn.get("out_lock_token"); // the proof of this claim
        let ours = turn.get::<_, &str>("out_orchestration_name") == "Greet";
        let (true, Some(history), Some(messages)) = (ours, history.as_array(), messages.as_array()) else {
            // Not ours, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
            self.queue.call("abandon_orchestration_item($1, $2, 1000)", &[text(&token), int(now())]).await?;
            return Ok(true);
        };
        let decision = greet::decide(&instance, execution, history, messages);
        let (count, time) = (decision.events.len(), int(now()));
        let [events, activities] = [decision.events, decision.activities].map(jsonb);
        // All or nothing: the history grows, the activity is sent, the messages and the lease go, in one transaction.
        let ack = [text(&token), time, int(execution), events, activities, jsonb(decision.outcome)];
        self.queue.call("ack_orchestration_item($1, $2, $3, $4, $5, '[]', $6)", &ack).await?;
        println!("{instance}: {count} new events");
        Ok(true)
    }

    /// Claims a work item, runs it under a heartbeat, and sends the result to its instance. False if there is none.
    async fn run_activity(&self) -> Result<bool, Box<dyn Error>> {
        let claim = [int(now()), int(self.lease_seconds * 1000)];
        let Some(claimed) = self.queue.call("fetch_work_item($1, $2)", &claim).await? else {
            return Ok(false);
        };
        let (token, attempt): (String, i32) =
            (claimed.get("out_lock_token"), claimed.get("out_attempt_count"));
        let item: Value = serde_json::from_str(claimed.get("out_work_item"))?;
        let todo = &item["ActivityExecute"];
        let (Some("greet"), Some(instance), Some(input)) =
            (todo["name"].as_str(), todo["instance"].as_str(), todo["input"].as_str())
        else {
            self.queue.call("abandon_work_item($1, $2, 1000)", &[text(&token), int(now())]).await?;
            return Ok(true);
        };
        println!("{instance}: greet, attempt {attempt}");
        // While it works, keep the lease, or another worker would begin the same. If it is lost, the work ends too.
        let result = tokio::select! {
            result = greet::greet(input, self.work, self.stop.clone()) => result,
            lost = self.keep_lease(&token) => return Err(lost.into()),
        };
        let Some(result) = result else {
            // Free again at once, and this attempt does not count: nothing was wrong with the work.
            self.queue.call("abandon_work_item($1, $2, 0, true)", &[text(&token), int(now())]).await?;
            println!("{instance}: given back");
            return Ok(true);
        };
        let done = json!({"ActivityCompleted": {"instance": instance, "execution_id": todo["execution_id"],
                                                "id": todo["id"], "result": result}});
        let completion = [text(&token), text(instance), text(&done.to_string()), int(now())];
        self.queue.call("ack_worker($1, $2, $3, $4)", &completion).await?;
        Ok(true)
    }

    /// Renews a lease three times in its length, and returns when that fails.
    async fn keep_lease(&self, token: &str) -> tokio_postgres::Error {
        loop {
            tokio::time::sleep(Duration::from_secs_f64(self.lease_seconds as f64 / 3.0)).await;
            let renewal = [text(token), int(now()), int(self.lease_seconds)];
            if let Err(error) = self.queue.call("renew_work_item_lock($1, $2, $3)", &renewal).await {
                return error;
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let setting = |name, otherwise: &str| var(name).unwrap_or_else(|_| otherwise.to_owned());
    let (db, connection) = tokio_postgres::connect(&var("DATABASE_URL")?, NoTls).await?;
    tokio::spawn(connection); // when it breaks, the next call fails
    let (stopper, stop) = watch::channel(false);
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! { _ = term.recv() => (), _ = int.recv() => () }
        stopper.send_replace(true);
    });
    let worker = Worker {
        queue: Queue { db, name: setting("QUEUE", "app") },
        lease_seconds: setting("LEASE_SECONDS", "30").parse()?,
        work: Duration::from_millis(setting("WORK_MS", "200").parse()?), // how long the activity takes
        stop,
    };
    println!("ready: queue {}", worker.queue.name);
    while !*worker.stop.borrow() {
        let did = match worker.take_turn().await {
            Ok(false) => worker.run_activity().await,
            turn => turn,
        };
        match did {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(POLL).await,
            Err(error) => {
                match error.downcast_ref::<tokio_postgres::Error>().and_then(|error| error.as_db_error()) {
                    // "Invalid lock token" and its like: the lease ended before we did, somebody else has it. Go on.
                    Some(refusal) if *refusal.code() == SqlState::RAISE_EXCEPTION => {
                        println!("lost a claim: {refusal}")
                    }
                    _ => return Err(error), // what it holds is free when the lease ends
                }
            }
        }
    }
    println!("stopped");
    Ok(())
}
