//! Queues outlive the extension, and get functions back that they have lost.

use super::{ADOPT, RELEASE, data, fill, reference_schema};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue;

#[tokio::test]
async fn queues_outlive_their_extension() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "SELECT duroxide_queue.create_queue('made')").await;
    fill(&mut session).await;
    must(&mut session, "SELECT made.enqueue_orchestrator_work('i0', '{}', now())").await;
    let claim = "SELECT out_lock_token FROM made.fetch_orchestration_item(2000000000000, 30000)";
    let token = run(&mut session, claim).await.value();
    let before = data(&mut session).await;
    let mut bystander = database.connect().await;
    let call = "SELECT * FROM app.get_queue_depths(2000000000000)";
    let depths = must(&mut bystander, call).await;

    must(&mut session, "DROP EXTENSION duroxide_queue").await;
    assert_eq!(data(&mut session).await, before, "tables and data stay");
    let error = must_fail(&mut bystander, call).await;
    assert_eq!(error.code, "42883", "{error}");
    let left = must(&mut session, "SELECT proname FROM pg_proc WHERE probin LIKE '%duroxide_queue%'").await;
    assert_eq!(left, Vec::<Vec<_>>::new(), "no function of the library stays");

    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    let seen = "SELECT queue, origin, own_functions, intact FROM duroxide_queue.queues ORDER BY queue";
    assert_eq!(shown(&must(&mut session, seen).await), ["app adopted 0 f", "made created 0 f"]);
    must(&mut session, ADOPT).await;
    must(&mut session, "SELECT duroxide_queue.adopt_queue('made')").await;
    assert_eq!(shown(&must(&mut session, seen).await), ["app adopted 32 t", "made created 32 t"]);

    assert_eq!(data(&mut session).await, before);
    assert_eq!(must(&mut bystander, call).await, depths, "the same session goes on");
    let ack =
        format!("SELECT made.ack_orchestration_item('{token}', 2000000001000, 1, '[]', '[]', '[]', '{{}}')");
    must(&mut session, &ack).await;
    must(&mut session, RELEASE).await;
    must(&mut session, "SELECT duroxide_queue.drop_queue('made')").await;
    let schemas = must(&mut session, "SELECT count(*) FROM pg_namespace WHERE nspname = 'made'").await;
    assert_eq!(schemas, [[Some("0".into())]], "create_queue made the schema, so drop_queue drops it");
    must(&mut session, "SELECT app.fetch_orchestration_item(2000000000000, 30000)").await;
    database.remove().await;
}

#[tokio::test]
async fn the_real_client_opens_queues_that_were_brought_back() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "SELECT duroxide_queue.create_queue('made')").await;

    must(&mut session, "DROP EXTENSION duroxide_queue; CREATE EXTENSION duroxide_queue").await;
    for schema in ["app", "made"] {
        must(&mut session, &format!("SELECT duroxide_queue.adopt_queue('{schema}')")).await;
        for policy in [MigrationPolicy::VerifyOnly, MigrationPolicy::ApplyAll] {
            let provider = queue::open(&database.url(), schema, policy).await;
            provider.pool().close().await;
        }
    }

    let intact = must(&mut session, "SELECT bool_and(intact) FROM duroxide_queue.queues").await;
    assert_eq!(intact, [[Some("t".into())]]);
    database.remove().await;
}

#[tokio::test]
async fn a_function_that_a_migration_puts_back_is_seen_and_repaired() {
    let (database, mut session) = reference_schema().await;
    let theirs = "SELECT pg_get_functiondef('app.list_instances()'::regprocedure)";
    let definition = run(&mut session, theirs).await.value();
    must(&mut session, ADOPT).await;
    let repaired = snapshot(&mut session, "app").await;
    let seen = "SELECT own_functions, intact FROM duroxide_queue.queues WHERE queue = 'app'";
    assert_eq!(shown(&must(&mut session, seen).await), ["32 t"]);
    let error = must_fail(&mut session, ADOPT).await;
    assert_eq!(error.code, "42710", "{error}");

    must(&mut session, &definition).await;
    assert_eq!(shown(&must(&mut session, seen).await), ["31 f"]);
    must(&mut session, ADOPT).await;

    assert_eq!(shown(&must(&mut session, seen).await), ["32 t"]);
    catalog::assert_same("the repair", &repaired, &snapshot(&mut session, "app").await);
    database.remove().await;
}

#[tokio::test]
async fn a_function_that_somebody_drops_is_seen_and_repaired() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "DROP FUNCTION app.fetch_history(text)").await;
    let seen = "SELECT own_functions, intact FROM duroxide_queue.queues WHERE queue = 'app'";
    assert_eq!(shown(&must(&mut session, seen).await), ["31 f"]);

    must(&mut session, ADOPT).await;

    assert_eq!(shown(&must(&mut session, seen).await), ["32 t"]);
    must(&mut session, "SELECT app.fetch_history('i')").await;
    database.remove().await;
}

fn shown(rows: &[Vec<Option<String>>]) -> Vec<String> {
    let cells = |row: &Vec<Option<String>>| -> Vec<String> {
        row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".into())).collect()
    };
    rows.iter().map(|row| cells(row).join(" ")).collect()
}
