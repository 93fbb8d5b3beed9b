//! Adopting a live schema and releasing it lose nothing, double nothing and leave the catalog as it
//! was; what cannot be adopted is refused whole, and a queue outlives its extension.

#[path = "adoption/extension.rs"]
mod extension;
#[path = "adoption/load.rs"]
mod load;
#[path = "adoption/refusals.rs"]
mod refusals;
#[path = "adoption/under_load.rs"]
mod under_load;

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, run};
use duroxide_queue_tests::queue;
use sqlx::postgres::PgConnection;

const ADOPT: &str = "SELECT duroxide_queue.adopt_queue('app')";
const RELEASE: &str = "SELECT duroxide_queue.release_queue('app')";

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

#[tokio::test]
async fn roles_that_worked_on_the_schema_still_do() {
    let (mut database, mut session) = reference_schema().await;
    let worker = database.role("worker").await;
    must(
        &mut session,
        &format!(
            "GRANT USAGE ON SCHEMA app TO {worker};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO {worker};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA app TO {worker}"
        ),
    )
    .await;
    let before = snapshot(&mut session, "app").await;

    must(&mut session, ADOPT).await;

    let mut theirs = database.connect_as(&worker).await;
    must(
        &mut theirs,
        "INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
         VALUES ('bad', 'not json', '-infinity', now())",
    )
    .await;
    enqueue(&mut theirs, "good").await;
    let claim = "SELECT out_instance_id FROM app.fetch_orchestration_item(2000000000000, 30000)";
    assert_eq!(run(&mut theirs, claim).await.value(), "good");
    must(&mut session, "DELETE FROM app.dead_letters").await;
    must(&mut session, RELEASE).await;
    catalog::assert_same("adopt and release", &before, &snapshot(&mut session, "app").await);
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
