//! Adoption and release while clients are at work.

use super::load::{self, Load};
use super::{ADOPT, RELEASE, reference_schema};
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{Client, OrchestrationStatus};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::outcome::{Outcome, must, run};
use duroxide_queue_tests::queue;
use duroxide_queue_tests::workflow::{self, Pace};
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Every client has had several turns in that time, and some have stalled.
const HOPS_BETWEEN_CHANGES: i64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adoption_and_release_under_load_lose_and_double_nothing() {
    let (database, mut session) = reference_schema().await;
    let load = Load::start(&database).await;

    change_under_load(&mut session).await;
    load.finish(&mut session).await;

    load::nothing_is_lost_or_doubled(&mut session).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adoption_and_release_do_not_deadlock_with_clients() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, load::LONG_DEADLOCKS).await;
    let load = Load::start(&database).await;

    let victims = change_under_load(&mut session).await;
    let refusals = load.finish(&mut session).await;

    println!("{} hops; clients were told {refusals:?}", load::hops(&mut session).await);
    assert_eq!(victims, 0, "adopt_queue or release_queue was the victim of a deadlock");
    assert!(!refusals.keys().any(|refusal| refusal.starts_with("40P01")), "{refusals:?}");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_workflows_complete_while_their_schema_is_adopted_and_released() {
    const ORDERS: usize = 12;
    let (database, mut session) = reference_schema().await;
    let provider = Arc::new(queue::open(&database.url(), "app", MigrationPolicy::VerifyOnly).await);
    let pace = Pace {
        charge: Duration::from_millis(150),
        activity: Duration::from_millis(60),
        timer: Duration::from_millis(300),
    };
    let runtime = Runtime::start_with_options(
        provider.clone(),
        workflow::activities(pace, Arc::new(|_| {})),
        workflow::orchestrations(pace),
        RuntimeOptions {
            dispatcher_min_poll_interval: Duration::from_millis(20),
            ..RuntimeOptions::default()
        },
    )
    .await;
    let client = Arc::new(Client::new(provider.clone()));

    let mut orders = Vec::new();
    for number in 0..ORDERS {
        let client = client.clone();
        orders.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(150) * u32::try_from(number).expect("a dozen")).await;
            let order = format!("order-{number}");
            client
                .start_orchestration(&order, workflow::ORCHESTRATION, workflow::INPUT)
                .await
                .expect("start");
            while !workflow::waits_for_approval(&client, &order).await.expect("history") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            client.raise_event(&order, workflow::APPROVAL, workflow::APPROVER).await.expect("raise");
            let status = client.wait_for_orchestration(&order, PATIENCE).await.expect("the order ends");
            let executions = client.list_executions(&order).await.expect("executions");
            (status, executions)
        }));
    }
    let mut changes = 0;
    while !orders.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let statement = if changes % 2 == 0 { ADOPT } else { RELEASE };
        deadlocks_until_done(&mut session, statement).await;
        changes += 1;
    }

    for order in orders {
        let (status, executions) = order.await.expect("no order panics");
        match status {
            OrchestrationStatus::Completed { output, .. } => assert_eq!(output, workflow::RESULT),
            other => panic!("an order did not complete: {other:?}"),
        }
        assert_eq!(executions, [1, 2]);
    }
    println!("{ORDERS} orders, {changes} adoptions and releases");
    assert!(changes >= 4, "only {changes} adoptions and releases in all that time");
    runtime.shutdown(None).await;
    for table in ["orchestrator_queue", "worker_queue", "instance_locks"] {
        let left = must(&mut session, &format!("SELECT count(*) FROM app.{table}")).await;
        assert_eq!(left, [[Some("0".into())]], "{table}");
    }
    provider.pool().close().await;
    database.remove().await;
}

/// Adopts and releases in turns while clients are at work, and sees that they go on; says how many
/// deadlocks that took.
async fn change_under_load(session: &mut PgConnection) -> u32 {
    let mut victims = 0;
    for statement in [ADOPT, RELEASE, ADOPT, RELEASE, ADOPT, RELEASE, ADOPT] {
        let before = load::hops(session).await;
        let begin = Instant::now();
        while load::hops(session).await < before + HOPS_BETWEEN_CHANGES {
            assert!(begin.elapsed() < PATIENCE, "nothing moves before {statement}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        victims += deadlocks_until_done(session, statement).await;
    }
    victims
}

/// Runs the statement until it is through; says how many deadlocks it was the victim of.
async fn deadlocks_until_done(session: &mut PgConnection, statement: &str) -> u32 {
    for victim in 0..20 {
        match run(session, statement).await {
            Outcome::Rows(_) => return victim,
            Outcome::Error(error) => assert_eq!(error.code, "40P01", "{statement}: {error}"),
        }
    }
    panic!("{statement} ended in a deadlock 20 times");
}
