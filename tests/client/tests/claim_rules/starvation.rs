//! One blocked or unsuitable key does not starve the others: what is eligible comes in the first
//! call, and nothing of what was passed over changes.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;

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
