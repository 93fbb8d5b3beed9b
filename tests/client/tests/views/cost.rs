//! What a look costs: index entries, most of them without the row, and never a whole table.

use super::{NOON, NOON_MS};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::{self, Kind};
use sqlx::postgres::PgConnection;

/// Rows that a look at 250,000 may fetch: those that are leased and what waits behind them (2,000 each), and
/// the windows in which attempts are looked for; for what is stuck, ten thousand on each way.
const MAX_ROWS: i64 = 40_000;

/// What a query did to the two tables of work and to the indexes of the queue.
#[derive(Clone, Copy, Debug)]
struct Cost {
    table_scans: i64,
    entries: i64,
    rows: i64,
}

impl Cost {
    /// Runs a query that gives one value.
    async fn of(session: &mut PgConnection, sql: &str) -> (String, Cost) {
        must(session, "BEGIN").await;
        let before = Cost::so_far(session).await;
        let seen = run(session, sql).await.value();
        let after = Cost::so_far(session).await;
        must(session, "ROLLBACK").await;
        let cost = Cost {
            table_scans: after.table_scans - before.table_scans,
            entries: after.entries - before.entries,
            rows: after.rows - before.rows,
        };
        (seen, cost)
    }

    async fn so_far(session: &mut PgConnection) -> Cost {
        let counters = must(
            session,
            "SELECT coalesce(sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'r' AND relname ~ '_queue$'), 0),
                    coalesce(sum(pg_stat_get_xact_tuples_returned(oid)) FILTER (WHERE relkind = 'i'), 0),
                    coalesce(sum(pg_stat_get_xact_tuples_fetched(oid)) FILTER (WHERE relkind = 'i'), 0)
             FROM pg_class WHERE relnamespace = 'app'::regnamespace",
        )
        .await;
        let counter = |column: usize| {
            counters[0][column].as_deref().and_then(|text| text.parse().ok()).expect("a counter")
        };
        Cost { table_scans: counter(0), entries: counter(1), rows: counter(2) }
    }
}

/// A table of 100,000 rows and more is never read as a whole, whatever the statistics say, on a created
/// queue and on an adopted one; and what is counted is what is there.
#[tokio::test]
async fn big_tables_are_read_by_index() {
    for kind in Kind::OURS {
        // A database of its own, so that no other test's snapshot keeps VACUUM from knowing rows to be visible.
        let database = Database::make().await;
        let mut session = database.connect().await;
        must(&mut session, "CREATE EXTENSION duroxide_queue; CREATE SCHEMA app; SET search_path = app").await;
        if kind == Kind::Adopted {
            queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await.pool().close().await;
        }
        let make = if kind == Kind::Adopted { "adopt_queue" } else { "create_queue" };
        must(&mut session, &format!("SELECT duroxide_queue.{make}('app')")).await;
        must(
            &mut session,
            &format!(
                "ALTER TABLE orchestrator_queue SET (autovacuum_enabled = off); ALTER TABLE worker_queue SET (autovacuum_enabled = off);
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count)
                   SELECT 'ready-' || n, '1', {NOON} - n * interval '1 s', 'epoch', CASE n WHEN 1 THEN 8 ELSE 0 END
                   FROM generate_series(1, 100000) n;
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
                   SELECT 'future-' || n, '1', {NOON} + n * interval '1 s', 'epoch' FROM generate_series(1, 50000) n;
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
                   SELECT 'leased-' || n, '1', 'epoch', 'epoch', 't' || n, {NOON_MS} + 600000, 1 FROM generate_series(1, 2000) n;
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
                   SELECT 'leased-' || n, '1', 'epoch', 'epoch' FROM generate_series(1, 2000) n;
                 INSERT INTO instance_locks SELECT 'leased-' || n, 't' || n, {NOON_MS} + 600000, {NOON_MS} FROM generate_series(1, 2000) n;
                 INSERT INTO worker_queue (work_item, visible_at, created_at)
                   SELECT '1', {NOON} - n * interval '1 s', 'epoch' FROM generate_series(1, 100000) n"
            ),
        )
        .await;
        for state in ["never analyzed", "vacuumed"] {
            if state == "vacuumed" {
                must(&mut session, "VACUUM ANALYZE orchestrator_queue").await;
                must(&mut session, "VACUUM ANALYZE worker_queue").await;
            }
            for (look, expected) in [
                (
                    format!(
                        "SELECT string_agg(concat_ws(' ', ready, waiting, scheduled, leased, expired, oldest_claimable_age, highest_attempt), ', ' ORDER BY kind)
                         FROM duroxide_queue.list_queue_health({NOON})"
                    ),
                    "100000 2000 50000 2000 0 1 day 03:46:40 8, 100000 0 0 0 0 1 day 03:46:40 0",
                ),
                (format!("SELECT count(*) || ' ' || max(attempt) FROM duroxide_queue.list_leases({NOON})"), "2000 1"),
                (
                    format!(
                        "SELECT string_agg(kind || ' ' || n, ', ' ORDER BY kind)
                         FROM (SELECT kind, count(*) AS n FROM duroxide_queue.stuck('5 minutes', 5, {NOON}) GROUP BY kind) s"
                    ),
                    "orchestration 1000, work item 1000",
                ),
            ] {
                let (seen, cost) = Cost::of(&mut session, &look).await;
                println!("{kind:?}, {state}: {cost:?}: {look}");
                assert_eq!(seen, expected, "{kind:?}, {state}");
                assert_eq!(cost.table_scans, 0, "{kind:?}, {state}: {cost:?}: {look}");
                if state == "vacuumed" {
                    assert!(cost.rows <= MAX_ROWS, "{kind:?}: {cost:?}: {look}");
                }
            }
            // Which a look without these indexes would do.
            let tried = "SELECT count(*) FROM orchestrator_queue WHERE attempt_count = -1";
            assert_eq!(Cost::of(&mut session, tried).await.1.table_scans, 1);
        }
        database.remove().await;
    }
}
