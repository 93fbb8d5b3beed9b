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
async fn f1_what_somebody_has_put_in_the_way_of_the_extension_does_not_become_part_of_it() {
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
async fn f1_every_object_is_the_installers_also_after_an_update_under_a_hostile_path() {
    let database = Database::make().await;
    let mut superuser = database.connect().await;
    let mut onlooker = database.connect().await;
    must(&mut superuser, SHADOWS).await;
    let versions = must(
        &mut superuser,
        "SELECT version FROM pg_available_extension_versions WHERE name = 'duroxide_queue' ORDER BY version",
    )
    .await;
    assert!(!versions.is_empty());

    for version in versions {
        let version = version[0].as_deref().expect("a version");
        for path in ["mine, pg_temp, pg_catalog", "''"] {
            must(&mut superuser, &format!("SET search_path = {path}")).await;
            must(&mut superuser, &format!("CREATE EXTENSION duroxide_queue VERSION '{version}'")).await;
            must(&mut superuser, "ALTER EXTENSION duroxide_queue UPDATE").await;

            let foreign = must(
                &mut onlooker,
                "SELECT 'not a member: ' || p.oid::regprocedure FROM pg_proc p
                 WHERE p.pronamespace = 'duroxide_queue'::regnamespace AND NOT EXISTS (
                   SELECT FROM pg_depend d WHERE (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e'))
                 UNION ALL
                 SELECT 'not a member: ' || c.oid::regclass FROM pg_class c
                 WHERE c.relnamespace = 'duroxide_queue'::regnamespace AND c.relkind NOT IN ('i', 'I') AND NOT EXISTS (
                   SELECT FROM pg_depend d WHERE (d.classid, d.objid, d.deptype) = ('pg_class'::regclass, c.oid, 'e'))
                 UNION ALL
                 SELECT 'not the installer''s: ' || pg_describe_object(d.classid, d.objid, d.objsubid) || ' is ' || s.refobjid::regrole
                 FROM pg_depend d
                 JOIN pg_extension x ON (d.refclassid, d.refobjid, d.deptype) = ('pg_extension'::regclass, x.oid, 'e')
                 JOIN pg_shdepend s ON (s.classid, s.objid, s.deptype) = (d.classid, d.objid, 'o')
                 WHERE x.extname = 'duroxide_queue' AND s.refobjid <> current_user::regrole
                 UNION ALL
                 SELECT 'an object of the path: ' || pg_describe_object(d.classid, d.objid, d.objsubid)
                 FROM pg_depend d JOIN pg_extension x ON d.refobjid = x.oid
                 WHERE x.extname = 'duroxide_queue' AND pg_describe_object(d.classid, d.objid, d.objsubid) LIKE '%mine.%'",
            )
            .await;
            assert_eq!(foreign, Vec::<Vec<_>>::new(), "version {version} under {path}");
            must(&mut superuser, "SELECT duroxide_queue.create_queue('app'); SELECT app.list_instances()")
                .await;
            must(&mut superuser, "SELECT duroxide_queue.drop_queue('app'); DROP EXTENSION duroxide_queue")
                .await;
        }
    }
    database.remove().await;
}

#[tokio::test]
async fn f1_what_somebody_has_made_in_a_schema_does_not_become_part_of_a_queue() {
    let (mut database, mut superuser) = database_with_extension().await;
    let evil = database.role("evil").await;
    must(&mut superuser, &format!("CREATE SCHEMA app; GRANT USAGE, CREATE ON SCHEMA app TO {evil}")).await;
    let mut session = database.connect_as(&evil).await;

    for (made, unmade) in [
        (
            "CREATE FUNCTION app.spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END';
             CREATE TABLE app.worker_queue (id bigserial PRIMARY KEY, work_item text);
             CREATE TRIGGER spy BEFORE INSERT ON app.worker_queue FOR EACH ROW EXECUTE FUNCTION app.spy()",
            "DROP TABLE app.worker_queue; DROP FUNCTION app.spy()",
        ),
        (
            "CREATE FUNCTION app.fetch_work_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_owner_id text DEFAULT NULL,
               p_session_lock_timeout_ms bigint DEFAULT NULL, p_tag_filter text[] DEFAULT NULL, p_tag_mode text DEFAULT 'default_only')
             RETURNS TABLE (out_work_item text, out_lock_token text, out_attempt_count integer)
             LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END'",
            "DROP FUNCTION app.fetch_work_item(bigint, bigint, text, bigint, text[], text)",
        ),
        ("CREATE SEQUENCE app.orchestrator_queue_id_seq", "DROP SEQUENCE app.orchestrator_queue_id_seq"),
        ("CREATE TYPE app.instance_locks AS (a integer)", "DROP TYPE app.instance_locks"),
    ] {
        must(&mut session, made).await;
        let before = snapshot(&mut superuser, "app").await;
        let error = must_fail(&mut superuser, "SELECT duroxide_queue.create_queue('app')").await;
        assert!(["42P07", "42723", "42710"].contains(&error.code.as_str()), "{made}: {error}");
        catalog::assert_same(made, &before, &snapshot(&mut superuser, "app").await);
        must(&mut session, unmade).await;
    }

    // What is in nobody's way may stay, and does not run.
    must(
        &mut session,
        "CREATE FUNCTION app.never(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END';
         CREATE OPERATOR app.= (FUNCTION = app.never, LEFTARG = text, RIGHTARG = text);
         CREATE FUNCTION app.hashtext(text) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''caught''; END'",
    )
    .await;
    must(&mut superuser, "SET search_path = app, pg_catalog; SELECT duroxide_queue.create_queue('app')")
        .await;
    a_turn_of_everything(&mut superuser, "with somebody's operators in the queue's schema").await;
    let theirs = must(
        &mut superuser,
        &format!(
            "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'app'::regnamespace AND c.relowner = '{evil}'::regrole
             UNION ALL SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = 'app'::regnamespace AND p.proowner = '{evil}'::regrole
             ORDER BY 1"
        ),
    )
    .await;
    assert_eq!(theirs, [[Some("hashtext".to_owned())], [Some("never".to_owned())]]);
    database.remove().await;
}

#[tokio::test]
async fn f2_names_that_the_caller_puts_in_the_way_do_not_matter() {
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
async fn f2_the_reference_does_run_into_those_names() {
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
async fn f2_a_definer_with_a_hostile_path_calls_the_real_functions() {
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
async fn f2_management_does_not_mind_names_in_the_way() {
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
