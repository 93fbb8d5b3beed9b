//! The instances that the workers of examples/ work on, and what has become of them.

use crate::worker::PATIENCE;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{
    ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
};
use duroxide_pg::{MigrationPolicy, PostgresProvider};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::Duration;

/// Starts an instance of an orchestration with the message that duroxide's client sends.
pub async fn start(session: &mut PgConnection, instance: &str, orchestration: &str) {
    let message = json!({"StartOrchestration": {
        "instance": instance, "orchestration": orchestration, "input": name_for(instance), "version": null,
        "parent_instance": null, "parent_id": null, "execution_id": 1,
    }});
    sqlx::query("SELECT enqueue_orchestrator_work($1, $2, now())")
        .bind(instance)
        .bind(message.to_string())
        .execute(session)
        .await
        .expect("the message is taken");
}

/// Whom an instance greets: nothing that JSON, SQL or a shell would leave alone if it were not quoted.
fn name_for(instance: &str) -> String {
    format!("{instance} \"Wörld\" 'n' \\n $1 %s ? :x\n")
}

/// Waits until so many instances are completed.
pub async fn completed(session: &mut PgConnection, count: usize) {
    wait_for(session, &format!("SELECT count(*) = {count} FROM executions WHERE status = 'Completed'")).await;
}

/// Waits until a query says true.
pub async fn wait_for(session: &mut PgConnection, query: &str) {
    let waiting = async {
        while must(session, query).await[0][0].as_deref() != Some("t") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        let rows = must(session, "SELECT to_jsonb(w) FROM worker_queue w").await;
        panic!("not so: {query}; work items: {rows:#?}");
    }
}

/// Checks that an instance was greeted, once, in the eyes of duroxide's own client, and that each event is stored
/// with the very fields that duroxide would have stored.
pub async fn assert_greeted(queue: &Queue, provider: &Arc<PostgresProvider>, instance: &str) {
    let name = name_for(instance);
    let greeting = format!("Hello, {name}!");
    let client = Client::new(Arc::clone(provider) as _);
    match client.get_orchestration_status(instance).await.expect("a status") {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, greeting),
        other => panic!("{instance}: {other:?}"),
    }

    let history = client.read_execution_history(instance, 1).await.expect("a history that duroxide can read");
    let kinds: Vec<_> =
        history.iter().map(|event| (event.event_id, event.source_event_id, event.kind.clone())).collect();
    let expected = [
        (
            1,
            None,
            EventKind::OrchestrationStarted {
                name: "Greet".into(),
                version: "1.0.0".into(),
                input: name.clone(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: None,
                initial_custom_status: None,
            },
        ),
        (
            2,
            None,
            EventKind::ActivityScheduled { name: "greet".into(), input: name, session_id: None, tag: None },
        ),
        (3, Some(2), EventKind::ActivityCompleted { result: greeting.clone() }),
        (4, None, EventKind::OrchestrationCompleted { output: greeting }),
    ];
    assert_eq!(kinds, expected, "{instance}");

    let stored: Vec<String> =
        sqlx::query_scalar("SELECT event_data FROM history WHERE instance_id = $1 ORDER BY event_id")
            .bind(instance)
            .fetch_all(&mut queue.connect().await)
            .await
            .expect("its history");
    for (stored, event) in stored.iter().zip(&history) {
        let stored: Value = serde_json::from_str(stored).expect("JSON");
        assert_eq!(stored, serde_json::to_value::<&Event>(event).expect("JSON"), "{instance}");
    }
}

/// Checks that no lease, no work item and no message is left.
pub async fn assert_nothing_is_left(session: &mut PgConnection) {
    let left = must(
        session,
        "SELECT (SELECT count(*) FROM instance_locks), (SELECT count(*) FROM worker_queue), \
                (SELECT count(*) FROM orchestrator_queue)",
    )
    .await;
    let zero = || Some("0".to_owned());
    assert_eq!(left, [[zero(), zero(), zero()]], "leases, work items, messages");
}

/// duroxide's own runtime, with the same orchestration and activity as the examples.
pub async fn duroxide(provider: Arc<PostgresProvider>) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Greet", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("greet", name).await
        })
        .build();
    let activities = ActivityRegistry::builder()
        .register("greet", |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) })
        .build();
    let options = RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(20),
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(provider, activities, orchestrations, options).await
}

/// Opens the unmodified client on a queue.
pub async fn client_of(queue: &Queue) -> Arc<PostgresProvider> {
    queue.provider(MigrationPolicy::VerifyOnly).await
}
