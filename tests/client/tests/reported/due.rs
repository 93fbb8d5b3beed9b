//! A5: nothing is delivered before it is due, and an acknowledgement takes away what its turn has
//! delivered and nothing else.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
const HOUR_MS: i64 = 3_600_000;
const LEASE_MS: i64 = 30_000;

#[tokio::test]
async fn a5_a_turn_takes_neither_a_pending_timer_nor_a_late_event_with_it() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        must(
            &mut session,
            &format!(
                "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
                 VALUES ('t', '\"timer\"', to_timestamp({NOW_MS} / 1000) + interval '1 hour', 'epoch')"
            ),
        )
        .await;
        dispatcher::enqueue(&mut session, "t", "\"event\"").await.expect("enqueue");

        let first = dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("t");
        dispatcher::enqueue(&mut session, "t", "\"late event\"").await.expect("enqueue");
        dispatcher::ack(&mut session, &first.token, NOW_MS).await.expect("ack");

        let left = "SELECT string_agg(work_item || ' ' || attempt_count, ', ' ORDER BY id) FROM orchestrator_queue WHERE lock_token IS NULL";
        assert_eq!(first.messages, "[\"event\"]", "{kind:?}");
        assert_eq!(text(&mut session, left).await, "\"timer\" 0, \"late event\" 0", "{kind:?}");
        let second = dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("t");
        assert_eq!(second.messages, "[\"late event\"]", "{kind:?}");
        dispatcher::ack(&mut session, &second.token, NOW_MS).await.expect("ack");
        assert_eq!(dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch"), None);
        let due_ms = NOW_MS + HOUR_MS;
        let third = dispatcher::fetch(&mut session, due_ms, LEASE_MS).await.expect("fetch").expect("t");
        assert_eq!(third.messages, "[\"timer\"]", "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn a5_what_is_given_back_for_later_is_due_to_the_millisecond() {
    const DELAY_MS: i64 = 60_000;
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = duroxide_queue_tests::server::now_ms();
        must(
            &mut session,
            "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)",
        )
        .await;
        let turn = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("i");
        let item = dispatcher::take(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("the item");
        must(
            &mut session,
            &format!(
                "SELECT abandon_orchestration_item('{}', {now_ms}, {DELAY_MS}), abandon_work_item('{}', {now_ms}, {DELAY_MS})",
                turn.token, item.token
            ),
        )
        .await;

        // Asked of get_queue_depths, whose clock stands still during the call, unlike that of a fetch.
        for (offset_ms, due) in [(DELAY_MS - 1, "0 0"), (DELAY_MS, "1 1")] {
            let depths = format!(
                "SELECT orchestrator_queue || ' ' || worker_queue FROM get_queue_depths({})",
                now_ms + offset_ms
            );
            assert_eq!(text(&mut session, &depths).await, due, "{kind:?}: {offset_ms} ms later");
        }
        let early_ms = now_ms + DELAY_MS / 2;
        assert_eq!(dispatcher::fetch(&mut session, early_ms, LEASE_MS).await.expect("fetch"), None);
        assert_eq!(dispatcher::take(&mut session, early_ms, LEASE_MS).await.expect("fetch"), None);
        let due_ms = now_ms + DELAY_MS;
        let turn = dispatcher::fetch(&mut session, due_ms, LEASE_MS).await.expect("fetch").expect("due");
        let item = dispatcher::take(&mut session, due_ms, LEASE_MS).await.expect("fetch").expect("due");
        assert_eq!((turn.attempts, item.attempts), (2, 2), "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn a5_what_is_given_back_at_once_keeps_its_time_and_leaves_other_messages_alone() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = duroxide_queue_tests::server::now_ms();
        dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
        let turn = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("i");
        // Under another token: as if the lease of an earlier claim were still written there.
        must(
            &mut session,
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
             VALUES ('i', '2', 'epoch', 'epoch', 'another', 9, 5)",
        )
        .await;

        must(&mut session, &format!("SELECT abandon_orchestration_item('{}', {now_ms})", turn.token)).await;

        let freed = "SELECT count(*) FROM orchestrator_queue WHERE work_item = '1' AND visible_at = 'epoch' AND lock_token IS NULL AND attempt_count = 1";
        let other = "SELECT count(*) FROM orchestrator_queue WHERE work_item = '2' AND visible_at = 'epoch' AND lock_token = 'another' AND locked_until = 9 AND attempt_count = 5";
        assert_eq!(
            (number(&mut session, freed).await, number(&mut session, other).await),
            (1, 1),
            "{kind:?}"
        );
        queue.remove().await;
    }
}
