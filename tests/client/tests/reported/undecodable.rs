//! D1: a message that no client could ever decode stops nobody but itself.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;

const LEASE_MS: i64 = 30_000;
/// Texts that are no JSON, or that jsonb cannot hold, and the error that says so.
const UNDECODABLE: [(&str, &str); 4] =
    [(r#"{"x": "\u0000"}"#, "22P05"), (r#"{"x": "\ud800"}"#, "22P02"), ("not json", "22P02"), ("", "22P02")];

/// Everything by which a message comes in: each call for an instance `bad`, with a text in place of `$`.
const DOORS: [&str; 2] = [
    "SELECT enqueue_orchestrator_work('bad', '$', 'epoch')",
    "SELECT ack_worker(out_lock_token, 'bad', '$', 2000) FROM fetch_work_item(2000, 60000)",
];

/// Leaves in the queue a work item to be acknowledged and, younger than all that comes in, good work.
async fn only_good_work(session: &mut PgConnection) {
    must(
        session,
        "TRUNCATE orchestrator_queue, instance_locks, worker_queue; \
         SELECT enqueue_worker_work('\"item\"', 0), enqueue_orchestrator_work('good', '1', now() - interval '1 s')",
    )
    .await;
}

#[tokio::test]
async fn d1_what_nobody_could_decode_is_refused_at_every_door() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        only_good_work(&mut session).await;
        for (bad, code) in UNDECODABLE {
            for door in DOORS {
                let error = must_fail(&mut session, &door.replace('$', bad)).await;
                assert_eq!(error.code, code, "{kind:?}: {door}: {bad}: {error}");
            }
        }
        assert_eq!(number(&mut session, "SELECT count(*) FROM orchestrator_queue").await, 1, "{kind:?}");
        let turn = dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch");
        assert_eq!(turn.expect("good work").instance, "good", "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn d1_what_came_in_past_the_doors_is_put_aside_and_good_work_flows() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        for (bad, code) in UNDECODABLE {
            only_good_work(&mut session).await;
            must(
                &mut session,
                &format!("INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('bad', '{bad}', 'epoch', 'epoch')"),
            )
            .await;

            let turn = dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch");

            assert_eq!(turn.expect("good work").instance, "good", "{kind:?}: {bad}");
            let letter = "SELECT instance_id || ' ' || sqlstate || ' ' || work_item FROM dead_letters";
            assert_eq!(text(&mut session, letter).await, format!("bad {code} {bad}"), "{kind:?}");
            let discard =
                format!("SELECT duroxide_queue.discard('{}', id) FROM dead_letters", queue.schema());
            must(&mut session, &discard).await;
        }
        queue.remove().await;
    }
}

#[tokio::test]
async fn d1_it_stops_every_fetch_on_the_reference() {
    let queue = Queue::reference().await;
    let mut session = queue.connect().await;
    for (bad, code) in UNDECODABLE {
        for door in DOORS {
            only_good_work(&mut session).await;
            must(&mut session, &door.replace('$', bad)).await;

            for _ in 0..3 {
                let fetch = format!("SELECT * FROM fetch_orchestration_item({}, {LEASE_MS})", now_ms());
                assert_eq!(run(&mut session, &fetch).await.code(), Some(code), "{door}: {bad}");
            }

            let attempts = "SELECT sum(attempt_count) FROM orchestrator_queue";
            assert_eq!(number(&mut session, attempts).await, 0, "{door}: {bad}");
        }
    }
    queue.remove().await;
}

#[tokio::test]
async fn d1_json_that_is_no_message_is_counted_and_hides_nothing() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        only_good_work(&mut session).await;
        must(&mut session, "SELECT enqueue_orchestrator_work('bad', '[1,2]', 'epoch')").await;

        let mut turns = Vec::new();
        for _ in 0..2 {
            turns.push(
                dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch").expect("one"),
            );
        }
        let later = now_ms() + 10 * LEASE_MS;
        let again = dispatcher::fetch(&mut session, later, LEASE_MS).await.expect("fetch").expect("expired");

        assert_eq!((turns[0].instance.as_str(), turns[0].messages.as_str()), ("bad", "[[1, 2]]"), "{kind:?}");
        assert_eq!(turns[1].instance, "good", "{kind:?}");
        assert_eq!((again.instance.as_str(), again.attempts), ("bad", 2), "{kind:?}");
        must(&mut session, "SELECT delete_instances_atomic(ARRAY['bad'], true)").await;
        queue.remove().await;
    }
}

#[tokio::test]
async fn d1_a_work_item_is_text_and_comes_back_byte_for_byte() {
    let item = r#" {"x": "\u0000", "y": "\ud800",  "z": 1.00} "#;
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        must(&mut session, &format!("SELECT enqueue_worker_work('{item}', 0)")).await;
        let taken = dispatcher::take(&mut session, now_ms(), LEASE_MS).await.expect("fetch").expect("it");
        assert_eq!(taken.item, item, "{kind:?}");
        queue.remove().await;
    }
}

/// jsonb writes all the digits of a number with an exponent: 75 kB of these come to more than a value can have.
#[tokio::test]
async fn d1_numbers_that_are_too_long_written_out_stop_nobody() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    const MANY: &str = "(SELECT '[' || string_agg('1e131071', ',') || ']' FROM generate_series(1, 8300))";
    for door in [
        format!("SELECT enqueue_orchestrator_work('i', {MANY}, 'epoch')"),
        format!(
            "SELECT append_history('i', 1, jsonb_build_array(jsonb_build_object('event_id', 1, 'event_type', 'E', 'event_data', {MANY})))"
        ),
    ] {
        assert_eq!(must_fail(&mut session, &door).await.code, "54000", "{door}");
    }
    must(
        &mut session,
        &format!(
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('numbers', {MANY}, 'epoch', 'epoch');
             INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
               SELECT 'doubles', (SELECT '[' || string_agg('1e308', ',') || ']' FROM generate_series(1, 100000)), 'epoch', 'epoch' FROM generate_series(1, 12);
             SELECT enqueue_orchestrator_work('history', '1', 'epoch'), enqueue_orchestrator_work('other', '1', now() - interval '1 s');
             INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('history', 'O', 'epoch', 'epoch');
             INSERT INTO history SELECT 'history', 1, n, 'E', {MANY}, 'epoch' FROM generate_series(1, 2) n"
        ),
    )
    .await;
    let fetch = format!(
        "SELECT out_instance_id, jsonb_array_length(out_messages), out_history::text LIKE '%undeliverable%'
         FROM fetch_orchestration_item({}, 600000)",
        now_ms()
    );
    let mut claimed = Vec::new();
    for _ in 0..3 {
        let row = must(&mut session, &fetch).await.remove(0);
        claimed.push(row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join(" "));
    }
    // What twelve messages come to is more than one turn may have.
    assert_eq!(claimed, ["doubles 8 f", "history 1 t", "other 1 f"]);
    assert_eq!(
        text(&mut session, "SELECT instance_id || ' ' || sqlstate FROM dead_letters").await,
        "numbers 54000"
    );
    queue.remove().await;
}

/// A reason is what is shown of it, not a copy of the text.
#[tokio::test]
async fn d1_a_huge_token_makes_no_huge_reason() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('i', repeat('a', 1000000), 'epoch', 'epoch')",
    )
    .await;
    must(&mut session, &format!("SELECT * FROM fetch_orchestration_item({}, 600000)", now_ms())).await;
    assert_eq!(text(&mut session, "SELECT (length(reason) < 1100)::text FROM dead_letters").await, "true");
    queue.remove().await;
}
