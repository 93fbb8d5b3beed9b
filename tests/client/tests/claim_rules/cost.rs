//! What a claim costs does not grow with what is leased, lies in the future, or waits behind a
//! lease, whatever the statistics say: counted in index entries and pages, not in time.

use crate::dispatcher::text;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
/// Index entries that one fetch may read.
const MAX_ENTRIES: i64 = 300;
/// Pages that one fetch may look at, indexes' and tables'.
const MAX_PAGES: i64 = 1_000;

/// What a call did to the tables and indexes of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) table_scans: i64,
    pub(crate) entries: i64,
    pub(crate) pages: i64,
}

impl Cost {
    /// Counts since the session last handed its counters over, which it does at the end of a
    /// transaction at the earliest.
    async fn so_far(session: &mut PgConnection) -> Cost {
        let counters = "SELECT sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'r') || ' ' \
                               || sum(pg_stat_get_xact_tuples_returned(oid)) FILTER (WHERE relkind = 'i') || ' ' \
                               || sum(pg_stat_get_xact_blocks_fetched(oid)) \
                        FROM pg_class WHERE relnamespace = current_schema()::regnamespace";
        let counters = text(session, counters).await;
        let mut counters = counters.split(' ').map(|counter| counter.parse::<i64>().expect("a counter"));
        let mut next = || counters.next().expect("three counters");
        Cost { table_scans: next(), entries: next(), pages: next() }
    }

    /// Runs a call and takes back what it did.
    pub(crate) async fn of(session: &mut PgConnection, call: &str, expected: &str) -> Cost {
        must(session, "BEGIN").await;
        let before = Cost::so_far(session).await;
        assert_eq!(text(session, call).await, expected, "{call}");
        let after = Cost::so_far(session).await;
        must(session, "ROLLBACK").await;
        Cost {
            table_scans: after.table_scans - before.table_scans,
            entries: after.entries - before.entries,
            pages: after.pages - before.pages,
        }
    }

    fn assert_small(&self, what: &str) {
        println!("{what}: {self:?}");
        assert_eq!(self.table_scans, 0, "{what} scans a table: {self:?}");
        assert!(self.entries <= MAX_ENTRIES && self.pages <= MAX_PAGES, "{what}: {self:?}");
    }
}

fn fetch(now_ms: i64) -> String {
    format!("SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item({now_ms}, 30000)")
}

fn take(now_ms: i64) -> String {
    format!("SELECT coalesce(max(out_work_item), 'none') FROM fetch_work_item({now_ms}, 30000)")
}

/// Index entries and pages are what counts, so dead ones must not be left by the filling.
async fn vacuum(session: &mut PgConnection) {
    for table in ["orchestrator_queue", "worker_queue", "instance_locks", "sessions"] {
        must(session, &format!("VACUUM {table}")).await;
    }
}

#[tokio::test]
async fn leases_and_the_future_cost_a_fetch_nothing() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    // One session has made its plans while the queue was empty.
    let mut early = queue.connect().await;
    for call in [fetch(NOW_MS), take(NOW_MS)] {
        assert_eq!(text(&mut early, &call).await, "none");
    }
    must(
        &mut session,
        &format!(
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
               SELECT 'leased-' || n, '1', 'epoch', 'epoch', 't' || n, {NOW_MS} + 600000, 1 FROM generate_series(1, 20000) n; \
             INSERT INTO instance_locks SELECT 'leased-' || n, 't' || n, {NOW_MS} + 600000, {NOW_MS} FROM generate_series(1, 20000) n; \
             INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
               SELECT 'future-' || n, '1', timestamptz '2050-01-01' + n * interval '1 s', 'epoch' FROM generate_series(1, 100000) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
               SELECT '1', 'epoch', 'epoch', 't' || n, {NOW_MS} + 600000, 1 FROM generate_series(1, 20000) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at) \
               SELECT '1', timestamptz '2050-01-01' + n * interval '1 s', 'epoch' FROM generate_series(1, 20000) n"
        ),
    )
    .await;
    vacuum(&mut session).await;

    for (state, instance, item) in
        [("nothing to claim", "none", "none"), ("one to claim", "free", "\"free\"")]
    {
        if instance == "free" {
            must(&mut session, "SELECT enqueue_orchestrator_work('free', '1', 'epoch'::timestamptz + interval '1 s'), enqueue_worker_work('\"free\"', 1000)").await;
        }
        for analyzed in ["never analyzed", "analyzed"] {
            if analyzed == "analyzed" {
                must(&mut session, "ANALYZE orchestrator_queue, worker_queue, instance_locks").await;
            }
            let mut fresh = queue.connect().await;
            for (whose, session) in [("early", &mut early), ("fresh", &mut fresh)] {
                for call in 1..=7 {
                    let what = format!("{state}, {analyzed}, {whose} session, call {call}");
                    Cost::of(session, &fetch(NOW_MS), instance).await.assert_small(&format!("fetch: {what}"));
                    Cost::of(session, &take(NOW_MS), item).await.assert_small(&format!("take: {what}"));
                }
            }
        }
    }
    queue.remove().await;
}

#[tokio::test]
async fn a_leased_instance_with_many_messages_costs_a_fetch_little() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        &format!(
            "INSERT INTO instance_locks VALUES ('hot', 't', {NOW_MS} + 600000, {NOW_MS}); \
             INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
               SELECT 'hot', '1', 'epoch', 'epoch' FROM generate_series(1, 20000) n; \
             SELECT enqueue_orchestrator_work('free', '1', 'epoch'::timestamptz + interval '1 s')"
        ),
    )
    .await;
    vacuum(&mut session).await;

    let mut entries = Vec::new();
    for _ in 0..41 {
        let cost = Cost::of(&mut session, &fetch(NOW_MS), "free").await;
        assert_eq!(cost.table_scans, 0, "{cost:?}");
        entries.push(cost.entries);
    }

    println!("index entries of each fetch: {entries:?}");
    // The way over the waiting messages has to be gone once in a while, but not by most calls.
    entries.sort_unstable();
    assert!(entries[entries.len() / 2] <= MAX_ENTRIES, "{entries:?}");
    queue.remove().await;
}

#[tokio::test]
async fn a_plan_made_for_an_empty_queue_serves_a_large_one() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "ANALYZE orchestrator_queue, worker_queue, instance_locks, instances, executions, history, sessions",
    )
    .await;
    let mut early = queue.connect().await;
    for _ in 0..7 {
        for call in [fetch(NOW_MS), take(NOW_MS)] {
            assert_eq!(text(&mut early, &call).await, "none");
        }
    }
    // Before autovacuum can know, as far as the statistics go the tables are empty.
    must(
        &mut session,
        "ALTER TABLE orchestrator_queue SET (autovacuum_enabled = off); ALTER TABLE worker_queue SET (autovacuum_enabled = off); \
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
           SELECT 'i' || lpad(n || '', 6, '0'), '1', 'epoch', 'epoch' FROM generate_series(1, 200000) n; \
         INSERT INTO worker_queue (work_item, visible_at, created_at) SELECT n || '', 'epoch', 'epoch' FROM generate_series(1, 50000) n",
    )
    .await;

    // The counters do see a scan, and what it reads.
    let scan = Cost::of(&mut session, "SELECT count(*) FROM worker_queue WHERE work_item = 'x'", "0").await;
    assert!(scan.table_scans == 1 && scan.pages > 100, "{scan:?}");
    let mut fresh = queue.connect().await;
    for (whose, session) in [("early", &mut early), ("fresh", &mut fresh)] {
        for call in 1..=7 {
            let what = format!("{whose} session, call {call}");
            Cost::of(session, &fetch(NOW_MS), "i000001").await.assert_small(&format!("fetch: {what}"));
            Cost::of(session, &take(NOW_MS), "1").await.assert_small(&format!("take: {what}"));
            let turn = format!(
                "WITH turn AS MATERIALIZED (SELECT * FROM fetch_orchestration_item({NOW_MS}, 30000)) \
                 SELECT count(ack_orchestration_item(out_lock_token, {NOW_MS}, 1, \
                   '[{{\"event_id\": 1, \"event_type\": \"E\", \"event_data\": \"1\"}}]', '[{{}}]', '[{{\"QueueMessage\": {{\"instance\": \"i1\"}}}}]', '{{}}')) \
                 FROM turn"
            );
            Cost::of(session, &turn, "1").await.assert_small(&format!("whole turn: {what}"));
        }
    }
    queue.remove().await;
}
