//! What a claim costs does not grow with what is leased, lies in the future, or waits behind a
//! lease, whatever the statistics say: counted in index entries and pages, not in time.

use crate::dispatcher::text;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
/// Index entries that one fetch may read.
const MAX_ENTRIES: i64 = 300;
/// Pages that one fetch may look at, indexes' and tables'.
const MAX_PAGES: i64 = 1_000;

const PLAN_CACHE_MODES: [&str; 3] = ["auto", "force_generic_plan", "force_custom_plan"];

/// What a call did to the tables and indexes of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) table_scans: i64,
    pub(crate) index_scans: i64,
    pub(crate) entries: i64,
    pub(crate) pages: i64,
}

impl Cost {
    /// Counts since the session last handed its counters over, which it does at the end of a
    /// transaction at the earliest.
    async fn so_far(session: &mut PgConnection) -> Cost {
        let counters = "SELECT sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'r') || ' ' \
                               || sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'i') || ' ' \
                               || sum(pg_stat_get_xact_tuples_returned(oid)) FILTER (WHERE relkind = 'i') || ' ' \
                               || sum(pg_stat_get_xact_blocks_fetched(oid)) \
                        FROM pg_class WHERE relnamespace = current_schema()::regnamespace";
        let counters = text(session, counters).await;
        let mut counters = counters.split(' ').map(|counter| counter.parse::<i64>().expect("a counter"));
        let mut next = || counters.next().expect("four counters");
        Cost { table_scans: next(), index_scans: next(), entries: next(), pages: next() }
    }

    /// Runs a call and takes back what it did.
    pub(crate) async fn of(session: &mut PgConnection, call: &str, expected: &str) -> Cost {
        must(session, "BEGIN").await;
        let cost = Cost::of_open(session, call, expected).await;
        must(session, "ROLLBACK").await;
        cost
    }

    /// The same in the session's open transaction.
    pub(crate) async fn of_open(session: &mut PgConnection, call: &str, expected: &str) -> Cost {
        let before = Cost::so_far(session).await;
        assert_eq!(text(session, call).await, expected, "{call}");
        let after = Cost::so_far(session).await;
        Cost {
            table_scans: after.table_scans - before.table_scans,
            index_scans: after.index_scans - before.index_scans,
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
async fn a_worker_passes_in_one_look_over_what_others_have_locked() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut other = queue.connect().await;
    let enqueue = "SELECT count(enqueue_worker_work(n::text, n)) FROM generate_series(1, 100) n";
    must(&mut session, enqueue).await;
    for item in ["1", "2"] {
        assert_eq!(text(&mut session, &take(NOW_MS)).await, item);
    }

    let among_free = Cost::of(&mut session, &take(NOW_MS), "3").await.index_scans;
    must(
        &mut other,
        "BEGIN; SELECT FROM worker_queue WHERE lock_token IS NULL ORDER BY id LIMIT 40 FOR UPDATE",
    )
    .await;
    let past_others = Cost::of(&mut session, &take(NOW_MS), "43").await.index_scans;
    let mut newcomer = queue.connect().await;
    let in_windows = Cost::of(&mut newcomer, &take(NOW_MS), "43").await.index_scans;

    println!("index scans: {among_free}, past others {past_others}, by a session's first claim {in_windows}");
    assert_eq!(past_others, among_free);
    assert!(in_windows > past_others, "the first claim looks in windows");
    must(&mut other, "ROLLBACK").await;
    queue.remove().await;
}

#[tokio::test]
async fn e1_leases_and_the_future_cost_a_fetch_nothing() {
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
               SELECT 'future-' || n, '1', timestamptz '2050-01-01' + n * interval '1 s', 'epoch' FROM generate_series(1, 200000) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
               SELECT '1', 'epoch', 'epoch', 't' || n, {NOW_MS} + 600000, 1 FROM generate_series(1, 20000) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at) \
               SELECT '1', timestamptz '2050-01-01' + n * interval '1 s', 'epoch' FROM generate_series(1, 200000) n"
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
            let mut sessions = Vec::new();
            for mode in PLAN_CACHE_MODES {
                let mut fresh = queue.connect().await;
                must(&mut fresh, &format!("SET plan_cache_mode = {mode}")).await;
                sessions.push((mode, fresh));
            }
            let fresh = sessions.iter_mut().map(|(mode, session)| (*mode, session));
            for (whose, session) in [("early", &mut early)].into_iter().chain(fresh) {
                // In mode auto a saved plan may become a generic one with the sixth call.
                for call in 1..=if whose.starts_with("force") { 3 } else { 10 } {
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
async fn e1_the_future_costs_a_fetch_of_the_reference_thousands_of_pages() {
    let queue = Queue::reference().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "INSERT INTO worker_queue (work_item, visible_at, created_at) \
           SELECT '1', timestamptz '2050-01-01' + n * interval '1 s', 'epoch' FROM generate_series(1, 200000) n; \
         SELECT enqueue_worker_work('\"free\"', 1000); ANALYZE worker_queue",
    )
    .await;

    let mut pages = Vec::new();
    for _ in 1..=10 {
        pages.push(Cost::of(&mut session, &take(NOW_MS), "\"free\"").await.pages);
    }

    println!("pages of each call: {pages:?}");
    // Which calls pay depends on the plan that the release chooses; the generic one, which stays, does.
    assert!(pages[9] > MAX_PAGES, "{pages:?}");
    queue.remove().await;
}

#[tokio::test]
async fn e3_leased_instances_with_many_messages_cost_a_fetch_little() {
    for (instances, messages) in [(1, 20_000), (2_000, 50)] {
        let queue = Queue::created().await;
        let mut session = queue.connect().await;
        must(
            &mut session,
            &format!(
                "INSERT INTO instance_locks SELECT 'hot-' || n, 't' || n, {NOW_MS} + 600000, {NOW_MS} FROM generate_series(1, {instances}) n; \
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
                   SELECT 'hot-' || n, '1', 'epoch', 'epoch', 't' || n, {NOW_MS} + 600000, 1 FROM generate_series(1, {instances}) n; \
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
                   SELECT 'hot-' || n, '1', 'epoch', 'epoch' FROM generate_series(1, {messages}), generate_series(1, {instances}) n; \
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

        println!(
            "{instances} leased instances, {messages} messages each: index entries of each fetch: {entries:?}"
        );
        // The way over the waiting messages has to be gone once in a while, but not by most calls.
        entries.sort_unstable();
        assert!(entries[entries.len() / 2] <= MAX_ENTRIES, "{instances} instances: {entries:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn e3_an_instance_with_thousands_of_messages_costs_by_their_number_and_is_in_nobodys_way() {
    /// Index entries that a message may cost: it is counted, locked, marked and read, then consumed; and
    /// rounds that were rolled back have left dead ones. A count for each would be a thousand.
    const ENTRIES_PER_MESSAGE: i64 = 40;
    const ACK: &str = "ack_orchestration_item(out_lock_token, 1000000000000, 1, '[]', '[]', '[]', '{}')";
    const RENEW: &str = "renew_orchestration_item_lock(out_lock_token, 1000000000000, 60)";
    const ABANDON: &str = "abandon_orchestration_item(out_lock_token, 1000000000000)";
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut other = queue.connect().await;
    must(&mut other, "SET lock_timeout = '1ms'").await;
    for messages in [1_500, 6_000] {
        must(
            &mut session,
            &format!(
                "TRUNCATE orchestrator_queue, instance_locks; \
                 INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
                   SELECT 'big', '{{\"n\": ' || n || '}}', 'epoch', 'epoch' FROM generate_series(1, {messages}) n; \
                 SELECT enqueue_orchestrator_work('free', '1', 'epoch'::timestamptz + interval '1 s')"
            ),
        )
        .await;
        for state in ["SELECT 1", "VACUUM orchestrator_queue", "ANALYZE orchestrator_queue"] {
            must(&mut session, state).await;
            let mut fresh = queue.connect().await;
            for then in ["out_instance_id", ACK, RENEW, ABANDON] {
                let turn = format!(
                    "WITH turn AS MATERIALIZED (SELECT * FROM fetch_orchestration_item({NOW_MS}, 30000)) \
                     SELECT coalesce(nullif({then}::text, ''), out_instance_id) FROM turn"
                );
                let cost = Cost::of(&mut fresh, &turn, "big").await;
                println!("{messages} messages, {state}, {then}: {cost:?}");
                let what = format!("{messages} messages, {state}, {then}: {cost:?}");
                assert!(cost.entries <= messages * ENTRIES_PER_MESSAGE, "{what}");
            }
            let deletion = "SELECT queue_messages_deleted FROM delete_instances_atomic(ARRAY['big'], true)";
            let cost = Cost::of(&mut fresh, deletion, &messages.to_string()).await;
            assert!(
                cost.entries <= messages * ENTRIES_PER_MESSAGE,
                "deletion, {messages}, {state}: {cost:?}"
            );
            must(
                &mut fresh,
                "BEGIN; UPDATE orchestrator_queue SET work_item = '{' WHERE instance_id = 'big'",
            )
            .await;
            let cost = Cost::of_open(&mut fresh, &fetch(NOW_MS), "free").await;
            must(&mut fresh, "ROLLBACK").await;
            assert!(
                cost.entries <= messages * ENTRIES_PER_MESSAGE,
                "bad ones, {messages}, {state}: {cost:?}"
            );
        }

        must(&mut session, "BEGIN").await;
        assert_eq!(text(&mut session, &fetch(NOW_MS)).await, "big");
        assert_eq!(text(&mut other, &fetch(NOW_MS)).await, "free");
        assert_eq!(text(&mut other, &fetch(NOW_MS)).await, "none");
        must(&mut session, "ROLLBACK").await;
    }
    queue.remove().await;
}

#[tokio::test]
async fn e1_a_plan_made_for_an_empty_queue_serves_a_large_one() {
    assert_an_early_plan_serves(Kind::Created).await;
}

#[tokio::test]
async fn e1_and_so_it_does_beside_the_indexes_of_an_adopted_queue() {
    assert_an_early_plan_serves(Kind::Adopted).await;
}

async fn assert_an_early_plan_serves(kind: Kind) {
    let queue = Queue::make(kind).await;
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

/// Polls of a queue in which all that waits is of leased instances: after one walk over it the next ones read little, and
/// what comes new, or is free because this session has acknowledged it, is found at once.
#[tokio::test]
async fn e3_polls_that_find_nothing_do_not_walk_over_all_that_waits_each_time() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        &format!(
            "INSERT INTO instance_locks SELECT 'leased ' || i, 't' || i, {NOW_MS} + 600000, 0 FROM generate_series(1, 2000) i;
             INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
             SELECT 'leased ' || i, '1', 'epoch', 'epoch' FROM generate_series(1, 2000) i, generate_series(1, 50)"
        ),
    )
    .await;
    vacuum(&mut session).await;
    let poll = fetch(NOW_MS);

    let mut entries = Vec::new();
    for _ in 0..12 {
        entries.push(Cost::of(&mut session, &poll, "none").await.entries);
    }
    println!("index entries of each poll: {entries:?}");
    let walks = entries.iter().filter(|&&entries| entries > 50_000).count();
    assert!((1..=6).contains(&walks), "one walk is as long as dozens of these polls: {entries:?}");
    assert!(entries.iter().any(|&entries| entries < MAX_ENTRIES), "{entries:?}");

    must(&mut session, "SELECT enqueue_orchestrator_work('new', '1', 'epoch')").await;
    assert_eq!(text(&mut session, &fetch(NOW_MS)).await, "new");
    assert_eq!(text(&mut session, &poll).await, "none");
    must(
        &mut session,
        &format!("SELECT ack_orchestration_item('t7', {NOW_MS}, 1, '[]', '[]', '[]', '{{}}')"),
    )
    .await;
    assert_eq!(text(&mut session, &poll).await, "leased 7");
    queue.remove().await;
}
