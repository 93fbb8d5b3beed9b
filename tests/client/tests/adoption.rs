//! Adopting a live schema and releasing it lose nothing, double nothing and leave the catalog as it
//! was; what cannot be adopted is refused whole, and a queue outlives its extension.

#[path = "adoption/load.rs"]
mod load;

use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{Client, OrchestrationStatus};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, must_fail, run};
use duroxide_queue_tests::queue;
use duroxide_queue_tests::workflow::{self, Pace};
use load::Load;
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::Duration;

const ADOPT: &str = "SELECT duroxide_queue.adopt_queue('app')";
const RELEASE: &str = "SELECT duroxide_queue.release_queue('app')";
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn release_leaves_catalog_and_data_as_they_were_before_adoption() {
    let (mut database, mut session) = reference_schema().await;
    let reader = database.role("reader").await;
    must(
        &mut session,
        &format!(
            "COMMENT ON FUNCTION app.list_instances() IS 'mine''s';
             COMMENT ON TABLE app.history IS 'events'; COMMENT ON SCHEMA app IS 'orders';
             GRANT USAGE ON SCHEMA app TO {reader};
             GRANT SELECT ON app.history TO {reader} WITH GRANT OPTION;
             REVOKE EXECUTE ON FUNCTION app.cleanup_schema() FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION app.list_instances() TO {reader};
             ALTER FUNCTION app.get_kv_value(text, text) COST 7 STABLE;
             ALTER FUNCTION app.fetch_history(text) ROWS 5 SET work_mem = '8MB';
             CREATE VIEW app.mine AS SELECT l.instance_id FROM app.list_instances() l;
             CREATE FUNCTION app.own() RETURNS int LANGUAGE sql AS 'SELECT 1';
             CREATE INDEX mine_idx ON app.history (created_at);
             ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT ON TABLES TO {reader}"
        ),
    )
    .await;
    fill(&mut session).await;
    let (catalog_before, data_before) = (snapshot(&mut session, "app").await, data(&mut session).await);

    must(&mut session, ADOPT).await;
    let (catalog_between, data_between) = (snapshot(&mut session, "app").await, data(&mut session).await);
    must(&mut session, RELEASE).await;

    assert_eq!(data_between, data_before, "adopting touches no row");
    assert_eq!(data(&mut session).await, data_before, "releasing touches no row");
    catalog::assert_same("adopt and release", &catalog_before, &snapshot(&mut session, "app").await);
    let kept = |kind: &str| -> Vec<_> {
        catalog_between.iter().filter(|line| line.starts_with(kind)).cloned().collect()
    };
    for line in catalog_before.iter().filter(|line| line.starts_with("comment ")) {
        assert!(kept("comment ").contains(line), "adopting keeps {line}");
    }
    database.remove().await;
}

#[tokio::test]
async fn adopting_keeps_oid_owner_privileges_and_comment_of_each_function() {
    let (mut database, mut session) = reference_schema().await;
    let reader = database.role("reader").await;
    must(
        &mut session,
        &format!(
            "REVOKE EXECUTE ON FUNCTION app.cleanup_schema() FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION app.list_instances() TO {reader};
             COMMENT ON FUNCTION app.list_instances() IS 'mine'"
        ),
    )
    .await;
    let identity = "SELECT p.oid, p.proname, p.proowner, p.proacl, obj_description(p.oid, 'pg_proc')
                    FROM pg_proc p WHERE p.pronamespace = 'app'::regnamespace ORDER BY p.oid";
    let before = must(&mut session, identity).await;

    must(&mut session, ADOPT).await;

    assert_eq!(must(&mut session, identity).await, before);
    database.remove().await;
}

#[tokio::test]
async fn adopting_can_be_rolled_back() {
    let (database, mut session) = reference_schema().await;
    fill(&mut session).await;
    let (catalog_before, data_before) = (snapshot(&mut session, "app").await, data(&mut session).await);

    must(&mut session, "BEGIN").await;
    must(&mut session, ADOPT).await;
    must(&mut session, "SELECT app.fetch_orchestration_item(2000000000000, 30000)").await;
    must(&mut session, "ROLLBACK").await;

    catalog::assert_same("a rolled back adoption", &catalog_before, &snapshot(&mut session, "app").await);
    assert_eq!(data(&mut session).await, data_before);
    must(&mut session, "SELECT app.fetch_orchestration_item(2000000000000, 30000)").await;

    must(&mut session, ADOPT).await;
    let adopted = snapshot(&mut session, "app").await;
    must(&mut session, "BEGIN").await;
    must(&mut session, RELEASE).await;
    must(&mut session, "ROLLBACK").await;
    catalog::assert_same("a rolled back release", &adopted, &snapshot(&mut session, "app").await);
    database.remove().await;
}

#[tokio::test]
async fn a_lease_outlives_adoption_and_release() {
    let (database, mut session) = reference_schema().await;
    for number in 0..2 {
        enqueue(&mut session, &format!("i{number}")).await;
        must(&mut session, "SELECT app.enqueue_worker_work('{}', 1)").await;
    }
    let claim = "SELECT out_lock_token FROM app.fetch_orchestration_item(2000000000000, 30000)";
    let claim_work = "SELECT out_lock_token FROM app.fetch_work_item(2000000000000, 30000)";
    let ack = |token: &str| {
        format!("SELECT app.ack_orchestration_item('{token}', 2000000001000, 1, '[]', '[]', '[]', '{{}}')")
    };
    let (old, old_work) =
        (run(&mut session, claim).await.value(), run(&mut session, claim_work).await.value());

    must(&mut session, ADOPT).await;
    must(&mut session, &ack(&old)).await;
    must(&mut session, &format!("SELECT app.ack_worker('{old_work}', 'i0', '{{}}', 2000000001000)")).await;
    let (new, new_work) =
        (run(&mut session, claim).await.value(), run(&mut session, claim_work).await.value());
    must(&mut session, RELEASE).await;

    must(&mut session, &ack(&new)).await;
    must(&mut session, &format!("SELECT app.ack_worker('{new_work}', 'i0', '{{}}', 2000000001000)")).await;
    let left = must(&mut session, "SELECT count(*) FROM app.worker_queue").await;
    assert_eq!(left, [[Some("0".into())]]);
    database.remove().await;
}

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
    let load = Load::start(&database).await;

    let victims = change_under_load(&mut session).await;
    let refusals = load.finish(&mut session).await;

    println!("{} hops; clients were told {refusals:?}", load::hops(&mut session).await);
    assert_eq!(victims, 0, "adopt_queue or release_queue was the victim of a deadlock");
    assert!(!refusals.keys().any(|refusal| refusal.starts_with("40P01")), "{refusals:?}");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_complete_while_their_schema_is_adopted_and_released() {
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

#[tokio::test]
async fn a_schema_at_another_level_is_refused_and_left_alone() {
    let (database, mut session) = reference_schema().await;
    let levels = [
        ("a row missing at the end", "DELETE FROM app._duroxide_migrations WHERE version = 26"),
        ("a row missing inside", "DELETE FROM app._duroxide_migrations WHERE version = 18"),
        ("no row", "DELETE FROM app._duroxide_migrations"),
        ("one row more", "INSERT INTO app._duroxide_migrations VALUES (27, '0027_next.sql')"),
        ("a row between", "INSERT INTO app._duroxide_migrations VALUES (22, '0022_between.sql')"),
        ("another name", "UPDATE app._duroxide_migrations SET name = '0026_other.sql' WHERE version = 26"),
        ("another number", "UPDATE app._duroxide_migrations SET version = 24 WHERE version = 25"),
        (
            "a name that reads like two rows",
            "DELETE FROM app._duroxide_migrations WHERE version = 2;
             UPDATE app._duroxide_migrations
             SET name = '0001_initial_schema.sql,2 0002_create_stored_procedures.sql' WHERE version = 1",
        ),
        ("no table", "DROP TABLE app._duroxide_migrations"),
    ];

    refused_and_unchanged(&mut session, "55000", &levels).await;

    must(&mut session, ADOPT).await;
    database.remove().await;
}

#[tokio::test]
async fn a_schema_that_is_not_whole_is_refused_and_left_alone() {
    let (database, mut session) = reference_schema().await;
    let faults = [
        ("function missing", "DROP FUNCTION app.get_parent_id(text)"),
        ("column missing", "ALTER TABLE app.worker_queue DROP COLUMN tag"),
        ("column renamed", "ALTER TABLE app.kv_delta RENAME COLUMN value TO val"),
        ("column of another type", "ALTER TABLE app.sessions ALTER COLUMN locked_until TYPE numeric"),
        ("table missing", "DROP TABLE app.kv_store"),
        ("table renamed", "ALTER TABLE app.history RENAME TO events"),
        (
            "function with other arguments",
            "DROP FUNCTION app.get_parent_id(text);
             CREATE FUNCTION app.get_parent_id(id bigint) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'",
        ),
        (
            "function with another result",
            "DROP FUNCTION app.latest_execution_id(text);
             CREATE FUNCTION app.latest_execution_id(p_instance_id text) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        ),
        (
            "function with other names",
            "DROP FUNCTION app.latest_execution_id(text);
             CREATE FUNCTION app.latest_execution_id(id text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        ),
        (
            "function that is a procedure",
            "DROP FUNCTION app.cleanup_schema(); CREATE PROCEDURE app.cleanup_schema() LANGUAGE sql AS 'SELECT 1'",
        ),
    ];

    refused_and_unchanged(&mut session, "55000", &faults).await;

    must(&mut session, ADOPT).await;
    database.remove().await;
}

#[tokio::test]
async fn a_name_that_adoption_needs_is_not_taken_over() {
    let (database, mut session) = reference_schema().await;
    let taken = [
        ("dead letters", "CREATE TABLE app.dead_letters (mine text)"),
        ("an index", "CREATE INDEX worker_queue_ready_idx ON app.worker_queue (id)"),
        ("registry as a view", "CREATE VIEW app._duroxide_queue AS SELECT 1 AS mine"),
    ];

    for (what, change) in taken {
        must(&mut session, "BEGIN").await;
        must(&mut session, change).await;
        let before = snapshot(&mut session, "app").await;
        must(&mut session, "SAVEPOINT s").await;
        let error = must_fail(&mut session, ADOPT).await;
        must(&mut session, "ROLLBACK TO s").await;
        assert_eq!(error.code, "42P07", "{what}: {error}");
        catalog::assert_same(what, &before, &snapshot(&mut session, "app").await);
        must(&mut session, "ROLLBACK").await;
    }

    database.remove().await;
}

#[tokio::test]
async fn only_the_owner_adopts_and_releases() {
    let (mut database, mut session) = reference_schema().await;
    let stranger = database.role("stranger").await;
    must(&mut session, &format!("GRANT CREATE, USAGE ON SCHEMA app TO {stranger}")).await;
    must(&mut session, &format!("GRANT ALL ON ALL TABLES IN SCHEMA app TO {stranger}")).await;
    let mut theirs = database.connect_as(&stranger).await;

    let before = snapshot(&mut session, "app").await;
    let error = must_fail(&mut theirs, ADOPT).await;
    assert_eq!(error.code, "42501", "{error}");
    assert!(error.hint.is_some(), "{error}");
    catalog::assert_same("a refused adoption", &before, &snapshot(&mut session, "app").await);

    must(&mut session, ADOPT).await;
    let before = snapshot(&mut session, "app").await;
    let error = must_fail(&mut theirs, RELEASE).await;
    assert_eq!(error.code, "42501", "{error}");
    assert!(error.hint.is_some(), "{error}");
    catalog::assert_same("a refused release", &before, &snapshot(&mut session, "app").await);
    database.remove().await;
}

#[tokio::test]
async fn a_schema_of_which_only_a_part_is_the_callers_is_refused() {
    let (mut database, mut session) = reference_schema().await;
    let owner = database.role("owner").await;
    must(
        &mut session,
        &format!(
            "ALTER SCHEMA app OWNER TO {owner};
             DO $$ DECLARE o record; BEGIN
               FOR o IN SELECT oid::regclass AS name FROM pg_class
                        WHERE relnamespace = 'app'::regnamespace AND relkind = 'r' LOOP
                 EXECUTE format('ALTER TABLE %s OWNER TO {owner}', o.name);
               END LOOP;
               FOR o IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'app'::regnamespace LOOP
                 EXECUTE format('ALTER FUNCTION %s OWNER TO {owner}', o.name);
               END LOOP;
             END $$"
        ),
    )
    .await;
    let mut theirs = database.connect_as(&owner).await;

    for object in ["FUNCTION app.list_instances()", "TABLE app.kv_store"] {
        must(&mut session, &format!("ALTER {object} OWNER TO postgres")).await;
        let before = snapshot(&mut session, "app").await;
        let error = must_fail(&mut theirs, ADOPT).await;
        assert_eq!(error.code, "42501", "{error}");
        assert!(error.hint.is_some(), "{error}");
        catalog::assert_same(object, &before, &snapshot(&mut session, "app").await);
        must(&mut session, &format!("ALTER {object} OWNER TO {owner}")).await;
    }
    must(&mut theirs, ADOPT).await;
    must(&mut session, "ALTER TABLE app.dead_letters OWNER TO postgres").await;
    let error = must_fail(&mut theirs, RELEASE).await;
    assert_eq!(error.code, "42501", "{error}");
    database.remove().await;
}

#[tokio::test]
async fn what_a_superuser_adopts_stays_its_owners() {
    let mut database = Database::make().await;
    let owner = database.role("owner").await;
    let mut session = database.connect().await;
    let name = database.name();
    must(
        &mut session,
        &format!("CREATE EXTENSION duroxide_queue; GRANT CREATE ON DATABASE {name} TO {owner}"),
    )
    .await;
    let provider = queue::open(&database.url_as(&owner), "app", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    let mut theirs = database.connect_as(&owner).await;

    must(&mut session, ADOPT).await;

    let foreign = must(
        &mut session,
        &format!(
            "SELECT c.relname FROM pg_class c
             WHERE c.relnamespace = 'app'::regnamespace AND c.relowner <> '{owner}'::regrole ORDER BY 1"
        ),
    )
    .await;
    must(
        &mut theirs,
        "INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
         VALUES ('bad', 'not json', now(), now())",
    )
    .await;
    let claim = run(&mut theirs, "SELECT * FROM app.fetch_orchestration_item(2000000000000, 30000)").await;
    assert_eq!(claim, Outcome::Rows(Vec::new()), "the owner's own dispatcher, with a bad message to bury");
    assert_eq!(foreign, Vec::<Vec<_>>::new(), "relations that are not the owner's");
    must(&mut theirs, "DELETE FROM app.dead_letters").await;
    must(&mut theirs, RELEASE).await;
    database.remove().await;
}

#[tokio::test]
async fn dead_letters_are_not_lost_by_release() {
    let (database, mut session) = reference_schema().await;
    must(
        &mut session,
        "INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
         VALUES ('bad', 'not json', now(), now())",
    )
    .await;
    must(&mut session, ADOPT).await;
    must(&mut session, "SELECT app.fetch_orchestration_item(2000000000000, 30000)").await;
    let before = snapshot(&mut session, "app").await;

    let error = must_fail(&mut session, RELEASE).await;

    assert_eq!(error.code, "55000", "{error}");
    assert!(error.message.contains("1 dead letter") && error.hint.is_some(), "{error}");
    catalog::assert_same("a refused release", &before, &snapshot(&mut session, "app").await);
    must(&mut session, "DELETE FROM app.dead_letters").await;
    must(&mut session, RELEASE).await;
    database.remove().await;
}

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

/// A database with the extension and a schema `app` that duroxide-pg has made.
async fn reference_schema() -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    let provider = queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    (database, session)
}

async fn enqueue(session: &mut PgConnection, instance: &str) {
    let message = format!(r#"{{"StartOrchestration":{{"instance":"{instance}","orchestration":"O"}}}}"#);
    must(session, &format!("SELECT app.enqueue_orchestrator_work('{instance}', '{message}', now())")).await;
}

/// Something in every table.
async fn fill(session: &mut PgConnection) {
    for instance in ["a", "b", "c"] {
        enqueue(session, instance).await;
    }
    must(
        session,
        r#"SELECT app.ack_orchestration_item(
             (SELECT out_lock_token FROM app.fetch_orchestration_item(2000000000000, 30000)), 2000000000000, 1,
             '[{"event_id":1,"event_type":"T","event_data":"{\"a\": 1.00}"}]',
             '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"n","input":"i","session_id":"s"}}]',
             '[{"TimerFired":{"instance":"a","fire_at_ms":2000000009999}}]',
             '{"orchestration_name":"O","orchestration_version":"1","status":"Completed",
               "kv_mutations":[{"action":"set","key":"k","value":"v"}]}');
           SELECT app.fetch_orchestration_item(2000000000000, 30000);
           SELECT app.fetch_work_item(2000000000000, 30000, 'w');
           INSERT INTO app.kv_delta VALUES ('a', 'd', NULL, 1)"#,
    )
    .await;
}

/// Every row of every table of data, with its place in the table.
async fn data(session: &mut PgConnection) -> Vec<String> {
    let tables = must(
        session,
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname IN ('app', 'made') AND c.relkind IN ('r', 'S')
           AND c.relname NOT IN ('_duroxide_queue', 'dead_letters', 'dead_letters_id_seq') ORDER BY 1",
    )
    .await;
    let mut rows = Vec::new();
    for table in tables {
        let table = table[0].as_deref().expect("a name").to_owned();
        let shown = if table.ends_with("_id_seq") { "last_value, is_called" } else { "t.ctid, t::text" };
        let found = must(session, &format!("SELECT {shown} FROM {table} t ORDER BY 1")).await;
        rows.extend(found.iter().map(|row| format!("{table} {row:?}")));
    }
    assert!(rows.len() > 10, "{rows:?}");
    rows
}

/// Adopting after each change fails with a code, a hint and a reason, and alters nothing. The changes
/// are undone. All that is found is told at once.
async fn refused_and_unchanged(session: &mut PgConnection, code: &str, changes: &[(&str, &str)]) {
    let mut complaints = Vec::new();
    for (what, change) in changes {
        must(session, "BEGIN").await;
        must(session, change).await;
        let before = snapshot(session, "app").await;
        must(session, "SAVEPOINT s").await;
        match run(session, ADOPT).await {
            Outcome::Rows(_) => complaints.push(format!("{what}: adopted")),
            Outcome::Error(error) => {
                println!("{what}: {error}");
                let says_nothing =
                    "it has 24 migrations up to version 26, where 24 up to version 26 are expected";
                if error.code != code || error.hint.is_none() || error.message.contains(says_nothing) {
                    complaints.push(format!("{what}: {error} (hint: {:?})", error.hint));
                }
            }
        }
        must(session, "ROLLBACK TO s").await;
        catalog::assert_same(what, &before, &snapshot(session, "app").await);
        must(session, "ROLLBACK").await;
    }
    assert!(complaints.is_empty(), "not refused, or not with {code}, a hint and a reason: {complaints:#?}");
}

/// Adopts and releases in turns while clients are at work, and sees that they go on; says how many
/// deadlocks that took.
async fn change_under_load(session: &mut PgConnection) -> u32 {
    let mut victims = 0;
    for statement in [ADOPT, RELEASE, ADOPT, RELEASE, ADOPT] {
        let before = load::hops(session).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(load::hops(session).await > before, "nothing moves before {statement}");
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

fn shown(rows: &[Vec<Option<String>>]) -> Vec<String> {
    let cells = |row: &Vec<Option<String>>| -> Vec<String> {
        row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".into())).collect()
    };
    rows.iter().map(|row| cells(row).join(" ")).collect()
}
