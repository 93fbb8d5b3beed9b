//! The real runtime does its work through the unmodified client, however a queue came to be.

use duroxide::provider_stress_tests::StressTestConfig;
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test_with_config,
};
use duroxide::providers::Provider;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{Client, OrchestrationStatus};
use duroxide_pg::{MigrationPolicy, PostgresProvider};
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::workflow::{self, Pace};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_workflow_completes_on_a_created_queue_under_apply_all() {
    a_workflow_completes(Kind::Created, MigrationPolicy::ApplyAll).await;
}

#[tokio::test]
async fn a_workflow_completes_on_a_created_queue_under_verify_only() {
    a_workflow_completes(Kind::Created, MigrationPolicy::VerifyOnly).await;
}

#[tokio::test]
async fn a_workflow_completes_on_an_adopted_queue_under_apply_all() {
    a_workflow_completes(Kind::Adopted, MigrationPolicy::ApplyAll).await;
}

#[tokio::test]
async fn a_workflow_completes_on_an_adopted_queue_under_verify_only() {
    a_workflow_completes(Kind::Adopted, MigrationPolicy::VerifyOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_queue_stands_the_stress_test() {
    stress(Kind::Created).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adopted_queue_stands_the_stress_test() {
    stress(Kind::Adopted).await;
}

async fn a_workflow_completes(kind: Kind, policy: MigrationPolicy) {
    let order = "order-1";
    let pace = Pace {
        charge: Duration::from_millis(100),
        activity: Duration::from_millis(20),
        timer: Duration::from_millis(200),
    };
    let queue = Queue::make(kind).await;
    let provider = queue.provider(policy).await;
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
    let client = Client::new(provider.clone());

    client.start_orchestration(order, workflow::ORCHESTRATION, workflow::INPUT).await.expect("start");
    approve_when_asked(&client, order).await;
    let status = client.wait_for_orchestration(order, PATIENCE).await;

    runtime.shutdown(None).await;
    match status.expect("the order ends") {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, workflow::RESULT),
        other => panic!("the order did not complete: {other:?}"),
    }
    assert_eq!(
        client.list_executions(order).await.expect("executions"),
        [1, 2],
        "continue-as-new makes a second execution"
    );
    nothing_is_left_over(&queue).await;
    provider.pool().close().await;
    queue.remove().await;
}

async fn approve_when_asked(client: &Client, order: &str) {
    tokio::time::timeout(PATIENCE, async {
        while !workflow::waits_for_approval(client, order).await.expect("history") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the order comes to its approval");
    client.raise_event(order, workflow::APPROVAL, workflow::APPROVER).await.expect("raise");
}

/// What is done leaves no message, no work item and no lease.
async fn nothing_is_left_over(queue: &Queue) {
    let left: (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM orchestrator_queue), \
                (SELECT count(*) FROM worker_queue), \
                (SELECT count(*) FROM instance_locks)",
    )
    .fetch_one(&mut queue.connect().await)
    .await
    .expect("the queue's tables");
    assert_eq!(left, (0, 0, 0), "messages, work items, instance leases");
}

async fn stress(kind: Kind) {
    let queue = Queue::make(kind).await;
    let provider = queue.provider(MigrationPolicy::ApplyAll).await;
    let config = StressTestConfig {
        max_concurrent: 10,
        duration_secs: 3,
        wait_timeout_secs: PATIENCE.as_secs(),
        ..StressTestConfig::default()
    };

    let result = run_parallel_orchestrations_test_with_config(&One(provider.clone()), config)
        .await
        .expect("the stress test runs");

    println!("{}: {} orchestrations in {:?}", kind.name(), result.completed, result.total_time);
    assert!(result.launched > 0, "{result:?}");
    assert_eq!(result.failed, 0, "{result:?}");
    assert_eq!(result.completed, result.launched, "{result:?}");
    nothing_is_left_over(&queue).await;
    provider.pool().close().await;
    queue.remove().await;
}

/// Gives the stress test the provider that the test has opened.
struct One(Arc<PostgresProvider>);

#[async_trait::async_trait]
impl ProviderStressFactory for One {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.0.clone()
    }
}
