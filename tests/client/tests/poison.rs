//! Bad data and the real runtime: a poisoned instance fails in the end, with the reason in its
//! message, and a bad message waits among the dead letters, while all others run on.

use duroxide::providers::InstanceInfo;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use duroxide_pg::{MigrationPolicy, PostgresProvider};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const MAX_ATTEMPTS: u32 = 2;
/// For how long the runtime gives back an instance whose history it cannot read.
const BACKOFF: Duration = Duration::from_secs(1);
const OTHERS: usize = 8;
/// Waits for the event `go` and returns its data.
const WAITER: &str = "Waiter";
/// Calls an activity and returns what that says.
const CALLER: &str = "Caller";

/// A queue, the runtime on it, and a session of an operator.
struct Stage {
    queue: Queue,
    provider: Arc<PostgresProvider>,
    runtime: Arc<Runtime>,
    client: Client,
    operator: PgConnection,
}

impl Stage {
    async fn set(kind: Kind) -> Stage {
        let queue = Queue::make(kind).await;
        let provider = queue.provider(MigrationPolicy::VerifyOnly).await;
        let activities = ActivityRegistry::builder()
            .register("greet", |_: ActivityContext, name: String| async move { Ok(format!("hello {name}")) })
            .build();
        let orchestrations = OrchestrationRegistry::builder()
            .register(WAITER, |ctx: OrchestrationContext, _: String| async move {
                Ok(ctx.schedule_wait("go").await)
            })
            .register(CALLER, |ctx: OrchestrationContext, name: String| async move {
                ctx.schedule_activity("greet", name).await
            })
            .build();
        let options = RuntimeOptions {
            dispatcher_min_poll_interval: Duration::from_millis(20),
            max_attempts: MAX_ATTEMPTS,
            ..RuntimeOptions::default()
        };
        let runtime =
            Runtime::start_with_options(provider.clone(), activities, orchestrations, options).await;
        let client = Client::new(provider.clone());
        let operator = queue.connect().await;
        Stage { queue, provider, runtime, client, operator }
    }

    /// Starts an instance and lets it come to where it waits.
    async fn waiting(&mut self, instance: &str) {
        self.client.start_orchestration(instance, WAITER, "").await.expect("start");
        let waits = format!(
            "SELECT 1 FROM history WHERE instance_id = '{instance}' AND event_data LIKE '%ExternalSubscribed%'"
        );
        self.seen(&waits).await;
    }

    /// Waits until the operator's query gives a row, and returns its first column.
    async fn seen(&mut self, query: &str) -> String {
        tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(row) = must(&mut self.operator, query).await.into_iter().next() {
                    return row.into_iter().next().flatten().unwrap_or_default();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{query}: never gave a row"))
    }

    /// Starts other instances now and lets them complete.
    async fn others_run_on(&self, round: &str) {
        for number in 0..OTHERS {
            let instance = format!("other-{round}-{number}");
            self.client.start_orchestration(&instance, CALLER, "world").await.expect("start");
        }
        for number in 0..OTHERS {
            self.completes(&format!("other-{round}-{number}"), "hello world").await;
        }
    }

    async fn completes(&self, instance: &str, expected: &str) {
        match self.client.wait_for_orchestration(instance, PATIENCE).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => assert_eq!(output, expected, "{instance}"),
            other => panic!("{instance} did not complete: {other:?}"),
        }
    }

    async fn info(&self, instance: &str) -> InstanceInfo {
        self.client.get_instance_info(instance).await.expect("get_instance_info")
    }

    async fn clear(self) {
        self.runtime.shutdown(None).await;
        self.provider.pool().close().await;
        drop(self.operator);
        self.queue.remove().await;
    }
}

/// A message of the instance that is written as the runtime writes it.
fn go(instance: &str, data: &str) -> String {
    format!(r#"{{"ExternalRaised":{{"instance":"{instance}","name":"go","data":"{data}"}}}}"#)
}

/// Puts a message into the queue past all doors, older than whatever else is there.
fn smuggle(instance: &str, message: &str) -> String {
    format!(
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('{instance}', '{message}', 'epoch', 'epoch')"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_with_a_bad_event_fails_with_the_reason_while_others_run_on() {
    for kind in Kind::OURS {
        let mut stage = Stage::set(kind).await;
        let bad_events = [
            ("no-json", "neither this nor that", "invalid input syntax for type json"),
            ("nul", r#"{"text": "\u0000"}"#, r"\u0000 cannot be converted to text"),
        ];
        let mut raised = Vec::new();
        for (instance, event, _) in bad_events {
            stage.waiting(instance).await;
            must(
                &mut stage.operator,
                &format!("INSERT INTO history VALUES ('{instance}', 1, 7, 'E', '{event}', now())"),
            )
            .await;
            raised.push(Instant::now());
            stage.client.raise_event(instance, "go", "1").await.expect("raise");
        }
        stage.others_run_on("meanwhile").await;

        for ((instance, _, reason), raised) in bad_events.into_iter().zip(raised) {
            stage
                .seen(&format!(
                    "SELECT 1 FROM executions WHERE instance_id = '{instance}' AND status = 'Failed'"
                ))
                .await;
            let took = raised.elapsed();
            let message = stage.info(instance).await.output.expect("a failed instance says why");
            println!("{kind:?}: {message}");
            let attempts = format!("failed after {} attempts (max {MAX_ATTEMPTS})", MAX_ATTEMPTS + 1);
            for part in ["poison", &attempts, "event 7 of execution 1 could never be delivered", reason] {
                // The client quotes the reason, so that a backslash in it is doubled.
                assert!(message.replace(r"\\", r"\").contains(part), "{kind:?}: no {part:?} in {message:?}");
            }
            assert!(
                took >= BACKOFF * MAX_ATTEMPTS,
                "{kind:?}: {instance} failed without backoff, after {took:?}"
            );
            let left = format!(
                "SELECT (SELECT count(*) FROM orchestrator_queue WHERE instance_id = '{instance}') + (SELECT count(*) FROM instance_locks WHERE instance_id = '{instance}')"
            );
            assert_eq!(must(&mut stage.operator, &left).await, [[Some("0".to_owned())]], "{kind:?}");

            // With the bad event gone, the client can read the history, and how it ended.
            must(
                &mut stage.operator,
                &format!("DELETE FROM history WHERE instance_id = '{instance}' AND event_id = 7"),
            )
            .await;
            match stage.client.get_orchestration_status(instance).await {
                Ok(OrchestrationStatus::Failed { details, .. }) => {
                    assert_eq!(details.display_message(), message, "{kind:?}");
                }
                other => panic!("{instance} is {other:?}"),
            }
        }
        stage.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_message_is_put_aside_repaired_and_delivered_while_others_run_on() {
    for kind in Kind::OURS {
        let mut stage = Stage::set(kind).await;
        let name = stage.queue.schema().to_owned();
        stage.waiting("cut-short").await;
        stage.waiting("annoyed").await;
        let whole = go("cut-short", "delivered in the end");
        let start = r#"{"StartOrchestration":{"instance":"late","orchestration":"Caller","input":"late riser","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}"#;
        for (instance, message) in [
            ("cut-short", &whole[..whole.len() - 1]),
            ("annoyed", r#"{"ExternalRaised": "\u0000"}"#),
            ("late", &start[1..]),
        ] {
            must(&mut stage.operator, &smuggle(instance, message)).await;
        }

        stage.others_run_on("meanwhile").await;

        for (instance, reason) in [
            ("cut-short", "22P02 invalid input syntax for type json"),
            ("annoyed", "22P05 unsupported Unicode escape sequence"),
            ("late", "22P02 invalid input syntax for type json"),
        ] {
            let letter = format!(
                "SELECT sqlstate || ' ' || reason FROM dead_letters WHERE instance_id = '{instance}'"
            );
            let letter = stage.seen(&letter).await;
            assert!(letter.starts_with(reason), "{kind:?}: {instance}: {letter}");
        }
        assert_eq!(stage.info("cut-short").await.status, "Running", "{kind:?}");

        // Repaired, a message takes its way.
        must(
            &mut stage.operator,
            &format!(
                "UPDATE dead_letters SET work_item = work_item || '}}' WHERE instance_id = 'cut-short'; \
                 UPDATE dead_letters SET work_item = '{{' || work_item WHERE instance_id = 'late'; \
                 SELECT duroxide_queue.redrive('{name}', id) FROM dead_letters WHERE instance_id <> 'annoyed'"
            ),
        )
        .await;
        stage.completes("cut-short", "delivered in the end").await;
        stage.completes("late", "hello late riser").await;

        // Discarded, it is gone, and its instance goes on with the next.
        must(&mut stage.operator, &format!("SELECT duroxide_queue.discard('{name}', id) FROM dead_letters"))
            .await;
        stage.client.raise_event("annoyed", "go", "anyway").await.expect("raise");
        stage.completes("annoyed", "anyway").await;
        stage.seen("SELECT 1 WHERE NOT EXISTS (SELECT FROM dead_letters) AND NOT EXISTS (SELECT FROM orchestrator_queue)").await;
        stage.clear().await;
    }
}

/// Which messages there are is the client's affair: one that the queue can deliver and the client
/// cannot read stays the instance's own trouble, with attempts that an operator sees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_only_the_client_cannot_read_hides_nothing() {
    let mut stage = Stage::set(Kind::Created).await;
    stage.waiting("odd").await;
    must(&mut stage.operator, &smuggle("odd", r#"{"SentByTomorrowsVersion": {}}"#)).await;

    stage.others_run_on("meanwhile").await;
    stage.seen("SELECT 1 FROM orchestrator_queue WHERE instance_id = 'odd' AND attempt_count > 0").await;

    must(&mut stage.operator, "DELETE FROM orchestrator_queue WHERE instance_id = 'odd'").await;
    stage.client.raise_event("odd", "go", "again").await.expect("raise");
    stage.completes("odd", "again").await;
    stage.clear().await;
}
