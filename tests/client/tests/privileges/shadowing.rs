//! What a caller has put under the names that the extension uses does not run, and holds no data.

use super::{database_with_extension, owned_queue};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::calls::{CALLS, READERS};
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::{self, Kind};
use sqlx::postgres::PgConnection;

/// Something in every place that a name is looked for.
const SHADOWS: &str = include_str!("shadows.sql");

#[tokio::test]
async fn what_somebody_has_put_in_the_way_of_the_extension_does_not_become_part_of_it() {
    let mut database = Database::make().await;
    let evil = database.role("evil").await;
    let name = database.name().to_owned();
    let mut superuser = database.connect().await;
    must(&mut superuser, &format!("GRANT CREATE ON DATABASE {name} TO {evil}")).await;
    let mut session = database.connect_as(&evil).await;
    must(
        &mut session,
        "CREATE SCHEMA duroxide_queue;
         CREATE FUNCTION duroxide_queue.create_queue(schema_name text) RETURNS void LANGUAGE sql AS 'SELECT 1 / 0'",
    )
    .await;
    let before = snapshot(&mut superuser, "duroxide_queue").await;

    let error = must_fail(&mut superuser, "CREATE EXTENSION duroxide_queue").await;
    assert_eq!(error.code, "42P06", "{error}");
    let error = must_fail(&mut superuser, "CREATE EXTENSION duroxide_queue SCHEMA duroxide_queue").await;
    assert!(!error.code.starts_with("XX"), "{error}");
    catalog::assert_same("a refused extension", &before, &snapshot(&mut superuser, "duroxide_queue").await);

    must(&mut session, "DROP SCHEMA duroxide_queue CASCADE").await;
    must(&mut superuser, SHADOWS).await;
    must(&mut superuser, "SET search_path = mine, pg_temp, pg_catalog").await;
    must(&mut superuser, "CREATE EXTENSION duroxide_queue").await;
    must(&mut superuser, "SELECT duroxide_queue.create_queue('app'); SELECT * FROM duroxide_queue.queues")
        .await;
    let error = must_fail(&mut superuser, "ALTER EXTENSION duroxide_queue SET SCHEMA mine").await;
    assert_eq!(error.code, "0A000", "{error}");
    database.remove().await;
}

#[tokio::test]
async fn names_that_the_caller_puts_in_the_way_do_not_matter() {
    for kind in Kind::OURS {
        for path in ["mine, pg_temp, pg_catalog", "pg_temp, mine, pg_catalog, app", "mine", "''"] {
            let (database, mut owners, _) = owned_queue(kind).await;
            let mut superuser = database.connect().await;
            must(&mut superuser, SHADOWS).await;
            must(&mut superuser, &format!("SET search_path = {path}")).await;

            a_turn_of_everything(&mut superuser, path).await;

            let real = must(&mut owners, "SELECT instance_id, status FROM app.get_instance_info('i')").await;
            assert_eq!(real, [[Some("i".into()), Some("Completed".into())]], "{path}");
            must(&mut superuser, "RESET search_path").await;
            let shadow = must(&mut superuser, "SELECT count(*) FROM pg_temp.orchestrator_queue").await;
            assert_eq!(shadow, [[Some("0".into())]], "nothing went into the shadow under {path}");
            // The plans that this session keeps were made under the hostile path.
            a_turn_of_everything(&mut superuser, "after that path").await;
            database.remove().await;
        }
    }
}

#[tokio::test]
async fn functions_without_a_pinned_path_do_run_into_those_names() {
    let (database, mut superuser) = database_with_extension().await;
    let provider = queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    must(&mut superuser, SHADOWS).await;
    must(&mut superuser, "SELECT app.enqueue_orchestrator_work('i', '{}', now())").await;
    must(&mut superuser, "SET search_path = mine, pg_temp, pg_catalog").await;

    let error = must_fail(&mut superuser, "SELECT app.fetch_orchestration_item(2000000000000, 1)").await;

    assert!(error.message.contains("of the caller's has run"), "the other tests show nothing: {error}");
    database.remove().await;
}

#[tokio::test]
async fn a_definer_with_a_hostile_path_calls_the_real_functions() {
    let (mut database, mut owners, owner) = owned_queue(Kind::Created).await;
    let caller = database.role("caller").await;
    let mut superuser = database.connect().await;
    must(&mut superuser, SHADOWS).await;
    must(
        &mut superuser,
        &format!(
            "GRANT USAGE ON SCHEMA mine TO {caller}, {owner};
             CREATE FUNCTION mine.claim() RETURNS text LANGUAGE sql SECURITY DEFINER
             SET search_path = mine, pg_temp, pg_catalog
             AS 'SELECT out_instance_id FROM app.fetch_orchestration_item(2000000000000, 30000)';
             ALTER FUNCTION mine.claim() OWNER TO {owner}"
        ),
    )
    .await;
    must(&mut owners, "SELECT app.enqueue_orchestrator_work('i', '{}', pg_catalog.now())").await;

    let mut callers = database.connect_as(&caller).await;
    assert_eq!(run(&mut callers, "SELECT mine.claim()").await.value(), "i");
    database.remove().await;
}

#[tokio::test]
async fn management_does_not_mind_names_in_the_way() {
    for path in ["mine, pg_temp, pg_catalog", "pg_temp, mine, pg_catalog", "''"] {
        let (database, mut superuser) = database_with_extension().await;
        let provider = queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await;
        provider.pool().close().await;
        must(&mut superuser, SHADOWS).await;
        let mut onlooker = database.connect().await;
        let before = snapshot(&mut onlooker, "app").await;
        must(&mut superuser, &format!("SET search_path = {path}")).await;

        for call in [
            "create_queue('made')",
            "grant_client('made', 'pg_monitor')",
            "revoke_client('made', 'pg_monitor')",
            "adopt_queue('app')",
            "release_queue('app')",
            "drop_queue('made')",
        ] {
            must(&mut superuser, &format!("SELECT duroxide_queue.{call}")).await;
            must(&mut superuser, "SELECT * FROM duroxide_queue.queues").await;
        }

        catalog::assert_same(path, &before, &snapshot(&mut onlooker, "app").await);
        database.remove().await;
    }
}

/// Every kind of work on the instance `i` of the queue `app`, with names of pg_catalog in full.
async fn a_turn_of_everything(session: &mut PgConnection, what: &str) {
    let claim = "SELECT out_lock_token FROM app.fetch_orchestration_item(2000000000000, 600000)";
    let claim_work = "SELECT out_lock_token FROM app.fetch_work_item(2000000000000, 600000, 'w')";
    must(session, "SELECT app.delete_instances_atomic(ARRAY['i'], true)").await;
    must(session, "SELECT app.enqueue_orchestrator_work('i', '{\"a\": 1e3}', pg_catalog.now())").await;
    must(session, "SELECT app.enqueue_worker_work('{}', 1, 'i', 1, 9, 's')").await;
    let token = run(session, claim).await.value();
    must(session, &format!("SELECT app.renew_orchestration_item_lock('{token}', 2000000000000, 700)")).await;
    must(
        session,
        &format!(
            r#"SELECT app.ack_orchestration_item('{token}', 2000000000000, 1,
                 '[{{"event_id":1,"event_type":"T","event_data":"{{\"a\": 1e3}}"}}]',
                 '[{{"ActivityExecute":{{"instance":"i","execution_id":1,"id":2}}}}]',
                 '[{{"TimerFired":{{"instance":"i","fire_at_ms":1999999999999}}}}, 5]',
                 '{{"orchestration_name":"O","orchestration_version":"1","status":"Completed",
                   "custom_status_action":"set","custom_status_value":"x","pinned_duroxide_version":{{"major":1,"minor":2,"patch":3}},
                   "kv_mutations":[{{"action":"set","key":"k","value":"v"}},{{"action":"clear_all"}},{{"action":"set","key":"l","value":"w"}}]}}',
                 '[{{"instance":"i","execution_id":1,"activity_id":7}}]')"#
        ),
    )
    .await;
    let work = run(session, claim_work).await.value();
    must(session, &format!("SELECT app.renew_work_item_lock('{work}', 2000000000000, 700)")).await;
    must(session, "SELECT app.renew_session_lock(ARRAY['w'], 2000000000000, 700000, 1000)").await;
    must(session, &format!("SELECT app.ack_worker('{work}', 'i', '{{}}', 2000000000000)")).await;
    let work = run(session, claim_work).await.value();
    must(session, &format!("SELECT app.abandon_work_item('{work}', 2000000000000, 5, true)")).await;
    let claimed = must(
        session,
        "SELECT out_orchestration_name, out_lock_token
         FROM app.fetch_orchestration_item(2000000009000, 600000, 0, 99999999)",
    )
    .await;
    assert_eq!(claimed[0][0].as_deref(), Some("O"), "{what}");
    let token = claimed[0][1].as_deref().expect("a token");
    must(session, &format!("SELECT app.abandon_orchestration_item('{token}', 2000000000000, 5, true)")).await;
    must(
        session,
        r#"SELECT app.append_history('i', 1, '[{"event_id":2,"event_type":"T","event_data":"{}"}]')"#,
    )
    .await;
    for (name, arguments) in CALLS.iter().filter(|(name, _)| READERS.contains(name)) {
        must(session, &format!("SELECT app.{name}({arguments})")).await;
    }
    must(session, "SELECT app.cleanup_orphaned_sessions(3000000000000)").await;
    let left = must(session, "SELECT app.fetch_history('i')").await;
    assert_eq!(left.len(), 2, "{what}");
}
