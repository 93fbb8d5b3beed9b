//! One blocked or unsuitable key does not starve the others: what is eligible comes in the first
//! call, and nothing of what was passed over changes.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use std::time::Duration;

const LEASE_MS: i64 = 600_000;

/// Every row of a table but those of one key, to be compared.
fn others(table: &str, key: &str) -> String {
    format!(
        "SELECT md5(string_agg(t::text, ',' ORDER BY t.id)) FROM {table} t WHERE {key} IS DISTINCT FROM 'free'"
    )
}

#[tokio::test]
async fn a6_a_thousand_messages_of_a_leased_instance_do_not_hide_a_free_one() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "hot", "0").await.expect("enqueue");
    dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch").expect("the hot instance");
    must(
        &mut session,
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
         SELECT 'hot', n || '', 'epoch', 'epoch' FROM generate_series(1, 1000) n",
    )
    .await;
    must(&mut session, "SELECT enqueue_orchestrator_work('free', '1', now() - interval '1 second')").await;
    let before = text(&mut session, &others("orchestrator_queue", "instance_id")).await;

    let first = dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch");

    assert_eq!(first.expect("the free instance").instance, "free");
    assert_eq!(dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch"), None);
    assert_eq!(text(&mut session, &others("orchestrator_queue", "instance_id")).await, before);
    queue.remove().await;
}

#[tokio::test]
async fn a6_instances_of_other_versions_do_not_hide_one_that_fits() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) \
           SELECT 'old-' || n, 'O', 'epoch', 'epoch' FROM generate_series(1, 500) n; \
         INSERT INTO executions (instance_id, execution_id, started_at, duroxide_version_major, duroxide_version_minor, duroxide_version_patch) \
           SELECT 'old-' || n, 1, 'epoch', 0, 1, n FROM generate_series(1, 500) n; \
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
           SELECT 'old-' || n, '1', 'epoch', 'epoch' FROM generate_series(1, 500) n; \
         INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('free', 'O', 'epoch', 'epoch'); \
         INSERT INTO executions (instance_id, execution_id, started_at, duroxide_version_major, duroxide_version_minor, duroxide_version_patch) \
           VALUES ('free', 1, 'epoch', 0, 2, 3); \
         SELECT enqueue_orchestrator_work('free', '1', now() - interval '1 second')",
    )
    .await;
    let before = text(&mut session, &others("orchestrator_queue", "instance_id")).await;
    let fitting = |least, greatest| {
        format!(
            "SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item({}, {LEASE_MS}, {least}, {greatest})",
            now_ms()
        )
    };

    // 0.2.4 and above, then 0.2.3 exactly.
    assert_eq!(text(&mut session, &fitting(2_004, 9_000_000)).await, "none");
    assert_eq!(text(&mut session, &fitting(2_003, 2_003)).await, "free");
    assert_eq!(text(&mut session, &fitting(2_000, 9_000_000)).await, "none");
    assert_eq!(text(&mut session, &others("orchestrator_queue", "instance_id")).await, before);
    assert_eq!(number(&mut session, "SELECT count(*) FROM instance_locks").await, 1);
    queue.remove().await;
}

#[tokio::test]
async fn a6_work_items_for_other_workers_do_not_hide_a_plain_one() {
    for (what, column, value) in [("a tag", "tag", "gpu"), ("a session of another worker", "session_id", "s")]
    {
        let queue = Queue::created().await;
        let mut session = queue.connect().await;
        must(
            &mut session,
            &format!(
                "INSERT INTO sessions VALUES ('s', 'other', {}, 0); \
                 INSERT INTO worker_queue (work_item, visible_at, created_at, {column}) \
                   SELECT n || '', 'epoch', 'epoch', '{value}' FROM generate_series(1, 1000) n; \
                 INSERT INTO worker_queue (work_item, visible_at, created_at, instance_id) VALUES ('\"plain\"', now() - interval '1 second', 'epoch', 'free')",
                now_ms() + LEASE_MS
            ),
        )
        .await;
        let before = text(&mut session, &others("worker_queue", "instance_id")).await;
        let take = format!(
            "SELECT coalesce(max(out_work_item), 'none') FROM fetch_work_item({}, {LEASE_MS}, 'me', {LEASE_MS})",
            now_ms()
        );

        assert_eq!(text(&mut session, &take).await, "\"plain\"", "behind items with {what}");
        assert_eq!(text(&mut session, &take).await, "none", "behind items with {what}");
        assert_eq!(text(&mut session, &others("worker_queue", "instance_id")).await, before);
        assert_eq!(text(&mut session, "SELECT worker_id FROM sessions").await, "other");
        queue.remove().await;
    }
}

/// Instances whose owners have died are taken over again and again; what is older comes first all the same.
#[tokio::test]
async fn a6_expired_leases_do_not_keep_an_older_free_instance_waiting() {
    const NOW_MS: i64 = 1_000_000_000_000;
    let fetch = |now_ms: i64, lease_ms: i64| {
        format!(
            "SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item({now_ms}, {lease_ms}, 0, 2000000)"
        )
    };
    for head in ["leased, with a message that waits", "of a version that nobody here runs"] {
        let queue = Queue::created().await;
        let mut session = queue.connect().await;
        let enqueue = |instance: &str, age: u32| {
            format!(
                "SELECT enqueue_orchestrator_work('{instance}', '1', to_timestamp({NOW_MS} / 1000 - {age}))"
            )
        };
        if head.starts_with("leased") {
            must(&mut session, &enqueue("head", 60)).await;
            assert_eq!(text(&mut session, &fetch(NOW_MS, LEASE_MS)).await, "head");
        } else {
            must(
                &mut session,
                "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('head', 'O', 'epoch', 'epoch'); \
                 INSERT INTO executions (instance_id, execution_id, started_at, duroxide_version_major, duroxide_version_minor, duroxide_version_patch) \
                   VALUES ('head', 1, 'epoch', 9, 9, 9)",
            )
            .await;
        }
        for (dying, age) in [("dying 1", 10), ("dying 2", 9), ("dying 3", 8)] {
            must(&mut session, &enqueue(dying, age)).await;
            assert_eq!(text(&mut session, &fetch(NOW_MS, 100)).await, dying);
        }
        must(&mut session, &enqueue("head", 50)).await;
        must(&mut session, &enqueue("older", 40)).await;

        let next = text(&mut session, &fetch(NOW_MS + 60_000, 100)).await;

        assert_eq!(next, "older", "{head}");
        assert_eq!(text(&mut session, &fetch(NOW_MS + 60_000, LEASE_MS)).await, "dying 1", "{head}");
        queue.remove().await;
    }
}

/// The same for work items, behind more of a session that another worker is just taking than one look sees.
#[tokio::test]
async fn a6_expired_leases_do_not_keep_an_older_free_work_item_waiting() {
    const NOW_MS: i64 = 1_000_000_000_000;
    let take = |owner: &str, now_ms: i64, lease_ms: i64| {
        format!(
            "SELECT coalesce(max(out_work_item), 'none') FROM fetch_work_item({now_ms}, {lease_ms}, '{owner}', 60000)"
        )
    };
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut other = queue.connect().await;
    for (item, age) in [("\"dying 1\"", 10_000), ("\"dying 2\"", 9_000)] {
        must(&mut session, &format!("SELECT enqueue_worker_work('{item}', {NOW_MS} - {age})")).await;
        assert_eq!(text(&mut session, &take("me", NOW_MS, 100)).await, item);
    }
    must(
        &mut session,
        &format!("SELECT count(enqueue_worker_work(n::text, {NOW_MS} - 60000 + n, p_session_id => 's')) FROM generate_series(1, 200) n;
                  SELECT enqueue_worker_work('\"older\"', {NOW_MS} - 40000)"),
    )
    .await;
    must(&mut other, "BEGIN").await;
    assert_eq!(text(&mut other, &take("other", NOW_MS, LEASE_MS)).await, "1");

    let next = text(&mut session, &take("me", NOW_MS + 60_000, LEASE_MS)).await;

    assert_eq!(next, "\"older\"");
    assert_eq!(text(&mut session, &take("me", NOW_MS + 60_000, LEASE_MS)).await, "\"dying 1\"");
    must(&mut other, "ROLLBACK").await;
    queue.remove().await;
}

/// An instance that has been pinned to another version since the fetch looked at what there is is not claimed.
#[tokio::test]
async fn a6_the_version_counts_that_an_instance_has_when_it_is_claimed() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut other = queue.connect().await;
    // The second look at a version takes three seconds: that of the statement which finds the instance.
    must(
        &mut session,
        "SELECT enqueue_orchestrator_work('other version', '1', 'epoch'), enqueue_orchestrator_work('changing', '1', now() - interval '1 s'); \
         INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) \
           SELECT i, 'O', 'epoch', 'epoch' FROM unnest(ARRAY['other version', 'changing']) i; \
         INSERT INTO executions (instance_id, execution_id, started_at, duroxide_version_major, duroxide_version_minor, duroxide_version_patch) \
           VALUES ('other version', 1, 'epoch', 9, 9, 9), ('changing', 1, 'epoch', 1, 0, 0); \
         ALTER TABLE executions RENAME TO plain; \
         CREATE SEQUENCE looks; \
         CREATE VIEW executions AS SELECT p.* FROM plain p, \
           LATERAL (SELECT pg_sleep(CASE WHEN nextval('looks') = 2 THEN 3 ELSE 0 END) WHERE p.instance_id <> '' OFFSET 0) slow",
    )
    .await;
    let fetch = format!(
        "SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item({}, {LEASE_MS}, 0, 1999999)",
        now_ms()
    );
    let change = async {
        while number(&mut other, "SELECT last_value FROM looks").await < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        must(&mut other, "UPDATE plain SET duroxide_version_major = 2 WHERE instance_id = 'changing'").await;
    };
    let (claimed, ()) = tokio::join!(text(&mut session, &fetch), change);

    assert_eq!(claimed, "none");
    assert_eq!(number(&mut session, "SELECT count(*) FROM instance_locks").await, 0);
    assert_eq!(number(&mut session, "SELECT last_value FROM looks").await, 3, "looks at a version");
    must(&mut session, "DROP VIEW executions; DROP SEQUENCE looks; ALTER TABLE plain RENAME TO executions")
        .await;
    queue.remove().await;
}
