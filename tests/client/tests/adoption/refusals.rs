//! What cannot be adopted or released is refused with a reason, and the catalog is as before.

use super::{ADOPT, RELEASE, data, fill, reference_schema};
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::outcome::{Outcome, must, must_fail, run};
use sqlx::postgres::PgConnection;

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
async fn c4_a_live_schema_is_not_created_over() {
    let (database, mut session) = reference_schema().await;
    fill(&mut session).await;
    let (catalog_before, data_before) = (snapshot(&mut session, "app").await, data(&mut session).await);

    let error = must_fail(&mut session, "SELECT duroxide_queue.create_queue('app')").await;
    assert_eq!(error.code, "42710", "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("adopt_queue('app')")));
    must(&mut session, "SELECT duroxide_queue.create_queue('beside')").await;
    must(&mut session, "SELECT beside.enqueue_orchestrator_work('a', '{}', now())").await;
    let claim = "SELECT out_instance_id FROM beside.fetch_orchestration_item(2000000000000, 30000)";
    assert_eq!(run(&mut session, claim).await.value(), "a");

    catalog::assert_same("a queue beside it", &catalog_before, &snapshot(&mut session, "app").await);
    assert_eq!(data(&mut session).await, data_before);
    let error = must_fail(&mut session, "SELECT duroxide_queue.release_queue('beside')").await;
    assert_eq!(error.code, "55000", "{error}");
    must(&mut session, ADOPT).await;
    let error = must_fail(&mut session, "SELECT duroxide_queue.drop_queue('app')").await;
    assert_eq!(error.code, "55000", "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("release_queue")));
    database.remove().await;
}

#[tokio::test]
async fn c4_the_extension_is_not_created_into_a_live_schema() {
    let (database, mut session) = reference_schema().await;
    fill(&mut session).await;
    must(&mut session, "DROP EXTENSION duroxide_queue; CREATE SCHEMA other").await;
    let (catalog_before, data_before) = (snapshot(&mut session, "app").await, data(&mut session).await);

    for schema in ["app", "other"] {
        let error =
            must_fail(&mut session, &format!("CREATE EXTENSION duroxide_queue SCHEMA {schema}")).await;
        assert_eq!(error.code, "0A000", "{error}");
    }
    let left = "SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'duroxide_queue') + count(*) \
                FROM pg_proc WHERE probin LIKE '%duroxide_queue%'";
    assert_eq!(run(&mut session, left).await.value(), "0", "the script is rolled back whole");
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;

    catalog::assert_same("creating the extension", &catalog_before, &snapshot(&mut session, "app").await);
    assert_eq!(data(&mut session).await, data_before);
    let owned = "SELECT count(*) FROM pg_depend d JOIN pg_proc p ON (d.classid, d.objid) = ('pg_proc'::regclass, p.oid) \
                 WHERE d.refclassid = 'pg_extension'::regclass AND p.pronamespace = 'app'::regnamespace";
    assert_eq!(
        run(&mut session, owned).await.value(),
        "0",
        "nothing of the old schema belongs to the extension"
    );
    database.remove().await;
}

#[tokio::test]
async fn c4_a_queue_beside_a_live_schema_shares_neither_keys_nor_rows_with_it() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, "SELECT duroxide_queue.create_queue('beside')").await;
    let mut other = database.connect().await;
    let claim = |schema: &str| {
        format!(
            "SELECT out_instance_id || ' ' || out_attempt_count || ' ' || out_messages FROM {schema}.fetch_orchestration_item(2000000000000, 30000)"
        )
    };
    let enqueue = |schema: &str| {
        format!(
            "SELECT {schema}.enqueue_orchestrator_work('i', '\"of {schema}\"', 'epoch'), {schema}.enqueue_worker_work('\"of {schema}\"', 1)"
        )
    };
    for schema in ["app", "beside"] {
        must(&mut session, &enqueue(schema)).await;
    }

    // The same instance of both, claimed at the same time: a shared key would make one of them wait or pass it over.
    must(&mut session, "BEGIN; SET LOCAL lock_timeout = '1ms'").await;
    must(&mut other, "BEGIN; SET LOCAL lock_timeout = '1ms'").await;
    assert_eq!(run(&mut session, &claim("app")).await.value(), "i 1 [\"of app\"]");
    assert_eq!(run(&mut other, &claim("beside")).await.value(), "i 1 [\"of beside\"]");
    must(&mut other, "ROLLBACK").await;
    must(&mut session, "COMMIT").await;
    assert_eq!(run(&mut other, &claim("beside")).await.value(), "i 1 [\"of beside\"]");
    let token = run(&mut other, "SELECT lock_token FROM beside.instance_locks").await.value();
    let ack = format!("ack_orchestration_item('{token}', 2000000001000, 1, '[]', '[]', '[]', '{{}}')");
    assert_eq!(must_fail(&mut other, &format!("SELECT app.{ack}")).await.message, "Invalid lock token");
    must(&mut other, &format!("SELECT beside.{ack}")).await;
    must(&mut other, "SELECT beside.delete_instances_atomic(ARRAY['i'], true)").await;

    let left = "SELECT (SELECT count(*) FROM app.orchestrator_queue) || ' ' || (SELECT count(*) FROM app.instance_locks) || ' ' \
                || (SELECT count(*) FROM app.worker_queue) || ' ' || (SELECT count(*) FROM beside.orchestrator_queue)";
    assert_eq!(run(&mut session, left).await.value(), "1 1 1 0");
    database.remove().await;
}

#[tokio::test]
async fn c4_a_name_that_adoption_needs_is_not_taken_over() {
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
async fn a_release_that_fails_in_the_middle_leaves_its_session_as_any_error_does() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "DROP TABLE app.dead_letters; CREATE TABLE public.done (what text)").await;

    let error = must_fail(&mut session, RELEASE).await;
    assert_eq!(error.code, "42P01", "{error}");
    must(&mut session, "INSERT INTO public.done VALUES ('after it')").await;

    // Whoever catches the error gets back to before it, with rights and settings of his own.
    must(
        &mut session,
        "DO $$
         BEGIN
           INSERT INTO public.done VALUES ('before it');
           BEGIN
             INSERT INTO public.done VALUES ('in the block that fails');
             PERFORM duroxide_queue.release_queue('app');
           EXCEPTION WHEN undefined_table THEN
             INSERT INTO public.done VALUES ('in the handler');
           END;
           CREATE TEMPORARY TABLE none_of_which_a_maintenance_command_may_make ();
         END $$",
    )
    .await;
    let done =
        run(&mut session, "SELECT string_agg(what, ', ' ORDER BY what) FROM public.done").await.value();
    assert_eq!(done, "after it, before it, in the handler");
    database.remove().await;
}

/// What adoption replaced names its schema: put back under another name, it would take the place of whatever has the old one.
#[tokio::test]
async fn a_renamed_queue_is_not_released_into_another() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "ALTER SCHEMA app RENAME TO renamed; SELECT duroxide_queue.create_queue('app')").await;
    let before = snapshot(&mut session, "app").await;

    let error = must_fail(&mut session, "SELECT duroxide_queue.release_queue('renamed')").await;

    assert_eq!(error.code, "55000", "{error}");
    catalog::assert_same("the other queue", &before, &snapshot(&mut session, "app").await);
    must(&mut session, "SELECT duroxide_queue.drop_queue('app'); DROP SCHEMA IF EXISTS app; ALTER SCHEMA renamed RENAME TO app").await;
    must(&mut session, RELEASE).await;
    database.remove().await;
}

/// Somebody has dropped an index that adoption made.
#[tokio::test]
async fn a_queue_without_one_of_its_indexes_is_released() {
    let (database, mut session) = reference_schema().await;
    must(&mut session, ADOPT).await;
    must(&mut session, "DROP INDEX app.worker_queue_leased_idx").await;
    must(&mut session, RELEASE).await;
    database.remove().await;
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
