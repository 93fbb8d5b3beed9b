//! The views over all queues wait for nobody, keep nobody waiting, and write nothing.

#[path = "views/cost.rs"]
mod cost;

use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;

const VIEWS: [&str; 4] = ["queue_health", "leases", "stuck", "bloat"];
/// Any moment will do: it is an argument.
const NOON: &str = "timestamptz '2030-01-01 12:00+00'";
const NOON_MS: i64 = 1_893_499_200_000;

/// A database with two queues, `app` and `good`, and a session.
async fn two_queues() -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('app'), duroxide_queue.create_queue('good')",
    )
    .await;
    (database, session)
}

/// A session that gives up at the first wait.
async fn impatient(database: &Database) -> PgConnection {
    let mut session = database.connect().await;
    must(&mut session, "SET lock_timeout = '1ms'; SET statement_timeout = '60s'").await;
    session
}

/// Which queues have figures, and what is said of the others.
async fn health(session: &mut PgConnection) -> String {
    let sql = "SELECT string_agg(queue || ': ' || coalesce(problem, 'ready ' || ready || ', leased ' || leased), '; ' ORDER BY queue)
               FROM duroxide_queue.queue_health WHERE kind = 'orchestration'";
    run(session, sql).await.value()
}

#[tokio::test]
async fn a_look_waits_for_no_transaction_and_sees_what_is_committed() {
    let (database, mut session) = two_queues().await;
    must(
        &mut session,
        &format!(
            "SELECT app.enqueue_orchestrator_work(i, '{{}}', now() - interval '1 hour') FROM unnest(ARRAY['a', 'b', 'c']) i;
             SELECT app.enqueue_worker_work('{{}}', 1);
             SELECT * FROM app.fetch_orchestration_item({NOON_MS}, 600000)"
        ),
    )
    .await;
    let token = run(&mut session, "SELECT lock_token FROM app.instance_locks").await.value();
    let mut reader = impatient(&database).await;
    let before = health(&mut reader).await;
    assert_eq!(before, "app: ready 2, leased 1; good: ready 0, leased 0");

    // One ack is not committed, a claim neither; a row of each table is locked, and a key.
    let mut acking = database.connect().await;
    must(
        &mut acking,
        &format!(
            "BEGIN; SELECT app.ack_orchestration_item('{token}', {NOON_MS}, 1, '[]', '[]', '[]', '{{}}')"
        ),
    )
    .await;
    let mut claiming = database.connect().await;
    must(
        &mut claiming,
        &format!("BEGIN; SELECT * FROM app.fetch_orchestration_item({NOON_MS}, 1000); SELECT * FROM app.worker_queue FOR UPDATE"),
    )
    .await;

    for view in VIEWS {
        must(&mut reader, &format!("SELECT * FROM duroxide_queue.{view}")).await;
    }
    assert_eq!(health(&mut reader).await, before);
    let leases = run(&mut reader, "SELECT count(*) FROM duroxide_queue.leases").await.value();
    assert_eq!(leases, "1");
    database.remove().await;
}

#[tokio::test]
async fn a_queue_that_is_locked_or_half_gone_is_left_out_and_the_others_are_shown() {
    let (database, mut session) = two_queues().await;
    must(&mut session, "SELECT good.enqueue_orchestrator_work('i', '{}', now() - interval '1 hour')").await;
    let mut reader = impatient(&database).await;
    let locked = "app: a table or an index of it is locked by another session; good: ready 1, leased 0";
    for (deed, expected) in [
        ("LOCK TABLE app.worker_queue IN ACCESS EXCLUSIVE MODE", locked),
        ("LOCK TABLE app.history IN ACCESS EXCLUSIVE MODE", locked),
        ("REINDEX INDEX app.orchestrator_queue_ready_idx", locked),
        ("ALTER TABLE app.sessions ADD COLUMN mine text", locked),
        ("SELECT duroxide_queue.drop_queue('app')", locked),
        ("DROP SCHEMA app CASCADE", locked),
        ("TRUNCATE app.orchestrator_queue", locked),
        // Work and maintenance that readers go with.
        (
            "SELECT app.enqueue_orchestrator_work('i', '{}', now())",
            "app: ready 0, leased 0; good: ready 1, leased 0",
        ),
        (
            "LOCK TABLE app.orchestrator_queue, app.instance_locks IN EXCLUSIVE MODE",
            "app: ready 0, leased 0; good: ready 1, leased 0",
        ),
        ("CREATE INDEX mine ON app.worker_queue (tag)", "app: ready 0, leased 0; good: ready 1, leased 0"),
    ] {
        must(&mut session, "BEGIN").await;
        must(&mut session, deed).await;
        assert_eq!(health(&mut reader).await, expected, "{deed}");
        for view in VIEWS {
            must(&mut reader, &format!("SELECT * FROM duroxide_queue.{view}")).await;
        }
        let stuck = run(&mut reader, "SELECT queue FROM duroxide_queue.stuck").await.value();
        assert_eq!(stuck, "good", "{deed}");
        must(&mut session, "ROLLBACK").await;
    }
    assert_eq!(health(&mut reader).await, "app: ready 0, leased 0; good: ready 1, leased 0");

    // A queue that goes between two looks of one transaction.
    must(&mut reader, "BEGIN").await;
    health(&mut reader).await;
    must(&mut session, "SELECT duroxide_queue.drop_queue('app')").await;
    assert_eq!(health(&mut reader).await, "good: ready 1, leased 0");
    must(&mut reader, "COMMIT").await;
    database.remove().await;
}

#[tokio::test]
async fn a_look_leaves_no_lock_no_transaction_id_and_no_change() {
    let (database, mut session) = two_queues().await;
    must(&mut session, "SELECT app.enqueue_orchestrator_work('i', '{}', now() - interval '1 hour')").await;
    let mut reader = database.connect().await;
    for mode in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE READ ONLY"] {
        must(&mut reader, &format!("BEGIN ISOLATION LEVEL {mode}")).await;
        for view in VIEWS {
            must(&mut reader, &format!("SELECT * FROM duroxide_queue.{view}")).await;
        }
        let left = run(
            &mut reader,
            "SELECT coalesce(pg_current_xact_id_if_assigned()::text, 'no id') || ' ' || current_user || ' '
                    || current_setting('enable_seqscan') || ' ' || current_setting('lock_timeout')
                    || ' ' || (SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                               WHERE l.pid = pg_backend_pid() AND c.relnamespace IN ('app'::regnamespace, 'good'::regnamespace))",
        )
        .await
        .value();
        assert_eq!(left, "no id postgres on 0 0", "{mode}");
        // What adoption and DDL ask for, while the reader stays in its transaction.
        must(
            &mut session,
            "BEGIN; LOCK TABLE app.orchestrator_queue, app.worker_queue, good.history IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
        )
        .await;
        must(&mut reader, "COMMIT").await;
    }
    database.remove().await;
}

#[tokio::test]
async fn a_look_that_is_cancelled_fails_as_a_whole_and_no_more_than_that() {
    let (database, mut session) = two_queues().await;
    must(
        &mut session,
        "INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
         SELECT 'i' || n, '1', 'epoch', 'epoch' FROM generate_series(1, 100000) n;
         CREATE TABLE public.done (what text)",
    )
    .await;
    // A timer that goes off when its statement is over is for the next one: each try has a session of its own.
    let mut cancelled = 0;
    for _ in 0..50 {
        let mut hurried = database.connect().await;
        assert_eq!(health(&mut hurried).await, "app: ready 100000, leased 0; good: ready 0, leased 0");
        must(&mut hurried, "SET statement_timeout = '5ms'").await;
        let looked = run(&mut hurried, "SELECT * FROM duroxide_queue.queue_health").await;
        while run(&mut hurried, "SET statement_timeout = 0").await.code() == Some("57014") {}
        must(&mut hurried, "TRUNCATE public.done").await;
        must(
            &mut hurried,
            "BEGIN;
             SET LOCAL statement_timeout = '5ms';
             DO $$
             BEGIN
               INSERT INTO public.done VALUES ('in the block that fails');
               PERFORM count(*) FROM duroxide_queue.queue_health;
             EXCEPTION WHEN query_canceled THEN
               INSERT INTO public.done VALUES ('in the handler');
             END $$",
        )
        .await;
        while run(&mut hurried, "COMMIT").await.code() == Some("57014") {}
        let caught = "SELECT string_agg(what, ', ' ORDER BY what) FROM public.done";
        let done = run(&mut hurried, caught).await;
        if looked.code() == Some("57014") && done.value() == "in the handler" {
            cancelled += 1;
        }
        if cancelled == 3 {
            break;
        }
    }
    assert_eq!(cancelled, 3, "looks that were cancelled as they should be");
    assert_eq!(health(&mut session).await, "app: ready 100000, leased 0; good: ready 0, leased 0");
    database.remove().await;
}

#[tokio::test]
async fn what_a_look_has_found_stays_when_the_queue_goes() {
    let (database, mut session) = two_queues().await;
    // Too long for a row, so that the tables hold pointers to them; an index could not hold them.
    must(
        &mut session,
        "ALTER TABLE app.instance_locks DROP CONSTRAINT instance_locks_pkey;
         INSERT INTO app.instance_locks
         SELECT string_agg(md5(k || ' ' || n), ''), 'token ' || k, 9000000000000, 0
         FROM generate_series(1, 2) k, generate_series(1, 300) n GROUP BY k",
    )
    .await;
    let ids =
        run(&mut session, "SELECT string_agg(instance_id, ' ' ORDER BY instance_id) FROM app.instance_locks")
            .await
            .value();
    let mut reader = database.connect().await;
    must(
        &mut reader,
        "BEGIN; DECLARE c CURSOR FOR SELECT instance_id FROM duroxide_queue.leases ORDER BY left(instance_id, 10); MOVE 0 FROM c",
    )
    .await;
    let first = run(&mut reader, "FETCH 1 FROM c").await.value();
    must(&mut session, "DROP SCHEMA app CASCADE").await;
    let second = run(&mut reader, "FETCH 1 FROM c").await.value();
    assert_eq!(format!("{first} {second}"), ids);
    database.remove().await;
}

#[tokio::test]
async fn who_is_in_the_way_is_named() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let schema = queue.schema().to_owned();
        must(
            &mut session,
            &format!(
                "SELECT enqueue_orchestrator_work(i, '{{}}', {NOON} - interval '1 hour') FROM unnest(ARRAY['free', 'key', 'row']) i;
                 SELECT enqueue_worker_work('{{}}', {NOON_MS} - 3600000), enqueue_worker_work('{{}}', {NOON_MS} - 3600000, 's', 1, 1, 's1')"
            ),
        )
        .await;
        let mut holder = queue.connect().await;
        let pid = run(&mut holder, "SELECT pg_backend_pid()").await.value();
        must(
            &mut holder,
            &format!(
                "BEGIN; SELECT pg_advisory_xact_lock(hashtext('{schema}.key')), pg_advisory_xact_lock(hashtext('{schema}.session.s1'));
                 SELECT * FROM orchestrator_queue WHERE instance_id = 'row' FOR UPDATE"
            ),
        )
        .await;
        let look = format!(
            "SELECT string_agg(coalesce(instance_id, kind) || ' ' || reason || ' ' || (detail ~ '\\m{pid}\\M' IS TRUE), ', ' ORDER BY kind, instance_id)
             FROM duroxide_queue.stuck('30 minutes', 5, {NOON}) WHERE queue = '{schema}'"
        );

        let stuck = run(&mut session, &look).await.value();

        assert_eq!(
            stuck,
            "free unclaimed false, key contended true, row contended true, s contended true, work item unclaimed false"
        );
        must(&mut holder, "ROLLBACK").await;
        let stuck = run(&mut session, &look).await.value();
        assert_eq!(
            stuck,
            "free unclaimed false, key unclaimed false, row unclaimed false, s session false, work item unclaimed false"
        );
        queue.remove().await;
    }
}

#[tokio::test]
async fn who_keeps_dead_rows_is_named() {
    let (database, mut session) = two_queues().await;
    must(&mut session, "ALTER TABLE app.sessions SET (autovacuum_enabled = off)").await;
    let mut holder = database.connect().await;
    let pid = run(&mut holder, "SELECT pg_backend_pid()").await.value();
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    must(
        &mut session,
        "INSERT INTO app.sessions SELECT n::text, 'w', 0, 0 FROM generate_series(1, 100) n; DELETE FROM app.sessions",
    )
    .await;
    must(&mut session, "SELECT pg_stat_force_next_flush()").await;
    must(&mut session, "VACUUM app.sessions").await;
    let look =
        "SELECT dead_rows || ' ' || oldest_holder || ' ' || split_part(oldest_holder_detail, ' ', 2) || ' '
                       || (oldest_xmin_age > 0) || ' ' || (oldest_holder_since IS NOT NULL)
                FROM duroxide_queue.bloat WHERE queue = 'app' AND table_name = 'sessions'";

    assert_eq!(run(&mut session, look).await.value(), format!("100 session {pid} true true"));

    // A reader who may not see other sessions is told the process all the same.
    let mut plain = Database::make().await;
    let role = plain.role("reader").await;
    must(
        &mut session,
        &format!("GRANT USAGE ON SCHEMA app TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA app TO {role}; SET ROLE {role}"),
    )
    .await;
    assert_eq!(run(&mut session, look).await.value(), format!("100 session {pid} true false"));
    must(&mut session, "RESET ROLE").await;
    must(&mut holder, "COMMIT").await;
    must(&mut session, "VACUUM app.sessions").await;
    let dead = "SELECT dead_rows FROM duroxide_queue.bloat WHERE queue = 'app' AND table_name = 'sessions'";
    assert_eq!(run(&mut session, dead).await.value(), "0");
    database.remove().await;
    plain.remove().await;
}

/// The page about monitoring has a section for each view, with each of its columns and its type.
#[tokio::test]
async fn monitoring_md_tells_every_column() {
    const PAGE: &str = include_str!("../../../docs/monitoring.md");
    let (database, mut session) = two_queues().await;
    let columns = must(
        &mut session,
        "SELECT c.relname, a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz')
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         WHERE c.relnamespace = 'duroxide_queue'::regnamespace AND c.relkind = 'v' AND c.relname <> 'queues' AND a.attnum > 0",
    )
    .await;
    assert!(columns.len() > 40);
    for column in columns {
        let [Some(view), Some(name), Some(column_type)] = column.as_slice() else { panic!("{column:?}") };
        let section = PAGE.split("\n## ").find(|section| section.starts_with(&format!("{view}\n")));
        let section = section.unwrap_or_else(|| panic!("no section about {view}"));
        let told = section.lines().any(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let (names, types) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
            names.contains(&format!("`{name}`")) && types.split(", ").any(|told| told == column_type)
        });
        assert!(told, "{view}.{name} {column_type}");
        let shown = section.contains("```text") && section.contains(" | ");
        assert!(shown, "no picture of {view}");
    }
    database.remove().await;
}
