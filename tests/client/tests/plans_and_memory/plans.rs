//! Plans that a session has kept are right again after any DDL, its own or another's: renamed,
//! swapped, dropped and made anew, extension and all; and one session serves any number of queues.

use crate::dispatcher::{code, text};
use crate::every_function::{assert_same, outcomes, prepare, prepared_outcomes, reference};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, must_fail};
use sqlx::postgres::{PgConnection, PgDatabaseError};

/// A database with the extension and some queues.
pub async fn database_with(queues: &[&str]) -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    for queue in queues {
        create(&mut session, queue).await;
    }
    (database, session)
}

async fn create(session: &mut PgConnection, queue: &str) {
    must(session, &format!("SELECT duroxide_queue.create_queue('{queue}')")).await;
}

/// Which instance a fetch finds; its lease is over before it begins, so the next finds it again.
pub async fn claimed(session: &mut PgConnection, schema: &str) -> String {
    text(session, &format!("SELECT coalesce(max(out_instance_id), 'none') FROM \"{schema}\".fetch_orchestration_item(1000000, -1000000)")).await
}

pub async fn enqueue(session: &mut PgConnection, schema: &str, instance: &str) {
    must(session, &format!("SELECT \"{schema}\".enqueue_orchestrator_work('{instance}', '1', 'epoch')"))
        .await;
}

#[tokio::test]
async fn c2_a_queue_can_be_renamed_and_two_can_swap_their_names() {
    let (database, mut session) = database_with(&["a", "b"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;
    assert_same(&mut session, "b", &expected, "the other queue").await;

    must(&mut other, "ALTER SCHEMA a RENAME TO renamed").await;
    assert_same(&mut session, "renamed", &expected, "renamed by another session").await;
    must(&mut session, "ALTER SCHEMA renamed RENAME TO \"Re-named.2\"").await;
    assert_same(&mut session, "Re-named.2", &expected, "renamed by the same session").await;
    must(&mut session, "BEGIN; ALTER SCHEMA \"Re-named.2\" RENAME TO passing").await;
    assert_same(&mut session, "passing", &expected[..1], "in the transaction that renames").await;
    must(&mut session, "ROLLBACK").await;
    assert_same(&mut session, "Re-named.2", &expected, "after the rename was rolled back").await;

    enqueue(&mut session, "Re-named.2", "of a").await;
    enqueue(&mut session, "b", "of b").await;
    must(
        &mut other,
        "BEGIN; ALTER SCHEMA b RENAME TO c; ALTER SCHEMA \"Re-named.2\" RENAME TO b; ALTER SCHEMA c RENAME TO a; COMMIT",
    )
    .await;
    assert_eq!(claimed(&mut session, "b").await, "of a");
    assert_eq!(claimed(&mut session, "a").await, "of b");
    must(
        &mut session,
        "BEGIN; ALTER SCHEMA b RENAME TO c; ALTER SCHEMA a RENAME TO b; ALTER SCHEMA c RENAME TO a",
    )
    .await;
    assert_eq!(claimed(&mut session, "a").await, "of a");
    assert_eq!(claimed(&mut session, "b").await, "of b");
    must(&mut session, "ROLLBACK").await;
    assert_eq!(claimed(&mut session, "b").await, "of a");
    database.remove().await;
}

#[tokio::test]
async fn the_key_of_an_instance_follows_the_name_of_its_queue() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut holder = database.connect().await;
    enqueue(&mut session, "a", "i").await;
    assert_eq!(claimed(&mut session, "a").await, "i");
    must(&mut session, "ALTER SCHEMA a RENAME TO b").await;

    must(&mut holder, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('a.i'))").await;
    assert_eq!(claimed(&mut session, "b").await, "i");
    must(&mut holder, "COMMIT; BEGIN; SELECT pg_advisory_xact_lock(hashtext('b.i'))").await;
    assert_eq!(claimed(&mut session, "b").await, "none");
    drop(holder);
    database.remove().await;
}

#[tokio::test]
async fn c2_a_queue_can_be_dropped_and_made_anew_under_a_live_session() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;

    for _ in 0..10 {
        assert_same(&mut session, "a", &expected, "before").await;
    }
    for (drop, create) in [
        ("SELECT duroxide_queue.drop_queue('a')", "SELECT duroxide_queue.create_queue('a')"),
        ("DROP SCHEMA a CASCADE", "SELECT duroxide_queue.create_queue('a')"),
        ("SELECT a.cleanup_schema()", "SELECT duroxide_queue.create_queue('a')"),
        (
            "DROP SCHEMA a CASCADE; DROP EXTENSION duroxide_queue",
            "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('a')",
        ),
        // Without a gap, and with another's tables in between.
        ("BEGIN; SELECT duroxide_queue.drop_queue('a')", "SELECT duroxide_queue.create_queue('a'); COMMIT"),
        ("BEGIN; SELECT duroxide_queue.drop_queue('a'); SELECT duroxide_queue.create_queue('a')", "ROLLBACK"),
    ] {
        let when = format!("{drop}; {create}");
        enqueue(&mut session, "a", "lost with the queue").await;
        must(&mut other, drop).await;
        if !drop.starts_with("BEGIN") {
            for outcome in outcomes(&mut session, "a").await {
                let gone = outcome.code().expect("the queue is gone");
                assert!(["3F000", "42P01", code::UNDEFINED_FUNCTION].contains(&gone), "{when}: {outcome:?}");
            }
        }
        must(&mut other, create).await;
        if create == "ROLLBACK" {
            must(&mut session, "TRUNCATE a.orchestrator_queue").await;
        }
        assert_same(&mut session, "a", &expected, &when).await;
        assert_same(&mut other, "a", &expected, &when).await;
    }
    database.remove().await;
}

#[tokio::test]
async fn c2_the_extension_can_be_dropped_and_created_anew_under_live_sessions() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;

    for drop in ["DROP EXTENSION duroxide_queue", "DROP EXTENSION duroxide_queue CASCADE"] {
        for _ in 0..10 {
            assert_same(&mut session, "a", &expected, "before").await;
            assert_same(&mut other, "a", &expected, "before").await;
        }
        enqueue(&mut other, "a", "stays").await;
        must(&mut session, drop).await;
        for connected in [&mut session, &mut other] {
            for outcome in outcomes(connected, "a").await {
                assert!(
                    [Some(code::UNDEFINED_FUNCTION), None].contains(&outcome.code()),
                    "{drop}: {outcome:?}"
                );
            }
        }
        must(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.adopt_queue('a')").await;
        assert_eq!(claimed(&mut other, "a").await, "stays");
        must(&mut other, "TRUNCATE a.orchestrator_queue, a.instance_locks").await;
        assert_same(&mut session, "a", &expected, drop).await;
        assert_same(&mut other, "a", &expected, drop).await;
    }
    database.remove().await;
}

#[tokio::test]
async fn c2_a_session_goes_on_in_another_schema_when_its_own_is_gone() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;
    for _ in 0..10 {
        assert_same(&mut session, "a", &expected, "before").await;
        assert_same(&mut other, "a", &expected, "before").await;
    }

    must(&mut session, "DROP SCHEMA a CASCADE").await;
    create(&mut session, "another").await;
    for connected in [&mut session, &mut other] {
        let gone = outcomes(connected, "a").await;
        assert!(gone.iter().all(|outcome| matches!(outcome.code(), Some("3F000" | "42P01"))), "{gone:?}");
        assert_same(connected, "another", &expected, "the other schema").await;
    }

    // The schema of the extension itself goes only with the extension.
    let error = must_fail(&mut session, "DROP SCHEMA duroxide_queue CASCADE").await;
    assert_eq!(error.code, "2BP01", "{error}");
    assert_same(&mut session, "another", &expected, "after the refused drop").await;
    database.remove().await;
}

#[tokio::test]
async fn c2_tables_can_change_between_two_calls() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;

    for ddl in [
        "ALTER TABLE a.orchestrator_queue ADD COLUMN extra text DEFAULT 'x'",
        "ALTER TABLE a.worker_queue ADD COLUMN extra integer",
        "ALTER TABLE a.worker_queue DROP COLUMN extra",
        "ALTER TABLE a.orchestrator_queue DROP COLUMN extra",
        "DROP INDEX a.orchestrator_queue_ready_idx",
        "DROP INDEX a.orchestrator_queue_leased_idx, a.worker_queue_ready_idx, a.worker_queue_leased_idx",
        "CREATE INDEX orchestrator_queue_ready_idx ON a.orchestrator_queue (visible_at, id) WHERE lock_token IS NULL",
        "CREATE INDEX mine ON a.history (event_type)",
        "REINDEX TABLE a.instance_locks",
        "VACUUM FULL a.orchestrator_queue",
        "VACUUM FULL a.instance_locks",
        "CLUSTER a.worker_queue USING worker_queue_pkey",
        "ANALYZE a.orchestrator_queue",
        "ALTER TABLE a.instance_locks DROP CONSTRAINT instance_locks_pkey, ADD CONSTRAINT another_name PRIMARY KEY (instance_id)",
        "ALTER TABLE a.history ALTER COLUMN event_type SET STORAGE EXTERNAL",
        "ALTER TABLE a.sessions ALTER COLUMN last_activity_at SET DEFAULT 0",
        "TRUNCATE a.orchestrator_queue, a.worker_queue, a.instance_locks",
        "CREATE TABLE a.other (a integer)",
        "ALTER TABLE a.kv_store RENAME TO kept; CREATE TABLE a.kv_store (LIKE a.kept INCLUDING ALL)",
    ] {
        for statement in ddl.split("; ") {
            must(&mut other, statement).await;
        }
        assert_same(&mut session, "a", &expected, ddl).await;
        assert_same(&mut other, "a", &expected, ddl).await;
    }
    for own in [
        "DISCARD PLANS",
        "DISCARD ALL",
        "SET plan_cache_mode = force_custom_plan",
        "SET enable_indexscan = off",
        "SET jit_above_cost = 0",
    ] {
        must(&mut session, own).await;
        assert_same(&mut session, "a", &expected, own).await;
    }
    database.remove().await;
}

#[tokio::test]
async fn g2_statements_that_a_client_has_prepared_outlive_updates() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut other = database.connect().await;
    let expected = reference(&mut session, "a").await;
    prepare(&mut session, "a").await;
    for _ in 0..10 {
        assert_eq!(prepared_outcomes(&mut session).await, expected, "before");
    }

    for change in [
        "ALTER EXTENSION duroxide_queue UPDATE",
        "BEGIN; DROP EXTENSION duroxide_queue; CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.adopt_queue('a'); COMMIT",
        "ALTER TABLE a.orchestrator_queue ADD COLUMN extra text; ALTER TABLE a.history ADD COLUMN extra text",
        "DROP INDEX a.orchestrator_queue_ready_idx",
        "ALTER SCHEMA a RENAME TO b; SELECT duroxide_queue.create_queue('a')",
    ] {
        must(&mut other, change).await;
        for (prepared, expected) in prepared_outcomes(&mut session).await.iter().zip(&expected) {
            assert_eq!(prepared, expected, "{change}");
        }
        assert_eq!(prepared_outcomes(&mut session).await, expected, "{change}, once more");
    }

    // Types that the functions cannot pass on: an error that says so, and no longer than they are such.
    for (column, changed) in [
        ("history ALTER COLUMN event_data", "bigint USING 1"),
        ("worker_queue ALTER COLUMN work_item", "bigint USING 1"),
        ("instances ALTER COLUMN orchestration_name", "varchar(100)"),
    ] {
        must(&mut other, &format!("ALTER TABLE a.{column} TYPE {changed}")).await;
        for outcome in prepared_outcomes(&mut session).await {
            let code = outcome.code().unwrap_or("00000");
            assert!(code != "0A000" && !code.starts_with("XX"), "{column} {changed}: {outcome:?}");
        }
        must(
            &mut other,
            &format!(
                "ALTER TABLE a.{column} TYPE text; TRUNCATE a.orchestrator_queue, a.worker_queue, a.instance_locks, \
                 a.instances, a.executions, a.history, a.kv_store, a.kv_delta, a.sessions"
            ),
        )
        .await;
        assert_eq!(prepared_outcomes(&mut session).await, expected, "{column} of its own type again");
    }
    database.remove().await;
}

#[tokio::test]
async fn a_session_serves_forty_queues() {
    const QUEUES: usize = 40;
    let (database, mut session) = database_with(&[]).await;
    for number in 0..QUEUES {
        create(&mut session, &format!("q{number}")).await;
        enqueue(&mut session, &format!("q{number}"), &format!("of {number}")).await;
    }

    for round in 0..3 {
        for number in (0..QUEUES).rev() {
            assert_eq!(
                claimed(&mut session, &format!("q{number}")).await,
                format!("of {number}"),
                "round {round}"
            );
        }
    }
    for number in 0..QUEUES {
        must(&mut session, &format!("TRUNCATE q{number}.orchestrator_queue, q{number}.instance_locks")).await;
    }
    let expected = reference(&mut session, "q0").await;
    for number in 1..QUEUES {
        assert_same(&mut session, &format!("q{number}"), &expected, "one of many").await;
    }
    database.remove().await;
}

#[tokio::test]
async fn f2_plans_do_not_depend_on_the_search_path_or_on_temporary_objects() {
    let (database, mut session) = database_with(&["a", "b"]).await;
    must(
        &mut session,
        "CREATE SCHEMA shadow; \
         CREATE TABLE shadow.orchestrator_queue (id bigint); CREATE TABLE shadow.instance_locks (instance_id text); \
         CREATE FUNCTION shadow.hashtext(text) RETURNS integer LANGUAGE sql AS 'SELECT 7'; \
         CREATE FUNCTION shadow.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT ''infinity''::timestamptz'; \
         CREATE FUNCTION shadow.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'; \
         CREATE OPERATOR shadow.= (FUNCTION = shadow.same, LEFTARG = text, RIGHTARG = text)",
    )
    .await;
    // Made under a hostile path in one session, under the usual one in the other.
    let mut hostile = database.connect().await;
    let take_over = "SET search_path = shadow, pg_temp, a, pg_catalog; \
                     CREATE TEMP TABLE worker_queue (id bigint); CREATE TEMP TABLE pg_class (relname text); CREATE TEMP TABLE sessions (session_id text)";
    must(&mut hostile, take_over).await;
    // The comparisons of the round itself must not be caught in the trap.
    let expected = reference(&mut session, "a").await;
    assert_same(&mut hostile, "a", &expected, "plans made under a hostile path").await;
    must(&mut hostile, "SET search_path = b").await;
    assert_same(&mut hostile, "a", &expected, "plans made under a hostile path, used under another").await;
    must(&mut session, take_over).await;
    assert_same(&mut session, "a", &expected, "plans used under a hostile path").await;
    must(&mut session, "SET search_path = ''").await;
    assert_same(&mut session, "b", &expected, "no path at all").await;
    database.remove().await;
}

/// The library stands in the planning of whatever else the session runs; errors there keep every part.
#[tokio::test]
async fn errors_in_planning_other_statements_stay_as_they_are() {
    let (database, mut session) = database_with(&["a"]).await;
    // Run while the statement that calls it is planned, since its arguments are constants.
    must(
        &mut session,
        "CREATE FUNCTION a.broken(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
           RAISE EXCEPTION 'out of stock' USING CONSTRAINT = 'stock_check', TABLE = 'goods', DETAIL = 'none left'; END $$",
    )
    .await;
    let mut parts = Vec::new();
    for loaded in [false, true] {
        if loaded {
            must(&mut session, "SELECT a.fetch_orchestration_item(1000, 1000)").await;
        }
        let error = sqlx::raw_sql("SELECT a.broken(1)").execute(&mut session).await.expect_err("it raises");
        let sqlx::Error::Database(error) = error else { panic!("{error}") };
        let error = error.downcast::<PgDatabaseError>();
        parts.push([
            Some(error.message().to_owned()),
            error.constraint().map(str::to_owned),
            error.table().map(str::to_owned),
            error.detail().map(str::to_owned),
            error.r#where().map(str::to_owned),
            error.line().map(|line| line.to_string()),
        ]);
    }

    assert!(parts[0].iter().all(Option::is_some), "{parts:?}");
    assert_eq!(parts[0], parts[1], "with the library in the session");
    drop(session);
    database.remove().await;
}
