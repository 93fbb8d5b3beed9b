//! D2: JSON comes back as PostgreSQL's own `text::jsonb` has it where it is jsonb, and byte for byte
//! where it is text.

use crate::dispatcher::{self, text};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::{Kind, Queue};

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
const LEASE_MS: i64 = 30_000;

/// Numbers that a double cannot hold, odd orders, duplicates, escapes and blanks.
const TEXTS: [&str; 9] = [
    r#"{"n": 12345678901234567890123}"#,
    r#"{"n": 18446744073709551615, "m": -9223372036854775809}"#,
    r#"{"n": 1e400, "m": 1.8e308, "k": 1e-400}"#,
    r#"{"n": 1.00, "m": -0, "k": -0.0, "l": 1E+2}"#,
    r#"{"n": 0.1234567890123456789012345678901234567890}"#,
    r#"{"dup": 1, "dup": {"a": 1}, "dup": 3}"#,
    r#"{"zz": 1, "a": 2, "bbb": 3, "": 4}"#,
    r#"{"e": "\u00e9", "f": "é", "g": "\ud83d\ude42", "h": "\/\b\f\\\""}"#,
    " {\t\"blanks\" :\n [ 1 ,2 , { } ] } ",
];

#[tokio::test]
async fn d2_messages_and_histories_are_what_text_as_jsonb_is() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        for (number, json) in TEXTS.iter().enumerate() {
            must(&mut session, &format!("SELECT enqueue_orchestrator_work('i', '{json}', 'epoch')")).await;
            let ack = format!(
                "WITH turn AS MATERIALIZED (SELECT * FROM fetch_orchestration_item({NOW_MS}, {LEASE_MS})) \
                 SELECT concat_ws(' ', out_messages = jsonb_build_array('{json}'::jsonb), out_messages::text = jsonb_build_array('{json}'::jsonb)::text, \
                   ack_orchestration_item(out_lock_token, {NOW_MS}, 1, \
                     jsonb_build_array(jsonb_build_object('event_id', {number} + 1, 'event_type', 'E', 'event_data', '{json}'::text)), \
                     jsonb_build_array(jsonb_build_object('ActivityExecute', jsonb_build_object('instance', 'i', 'input', '{json}'::jsonb))), '[]', \
                     jsonb_build_object('orchestration_name', 'O', 'orchestration_version', '1', \
                       'kv_mutations', jsonb_build_array(jsonb_build_object('action', 'set', 'key', '{number}', 'value', '{json}'::text))))) FROM turn"
            );
            let comparison = text(&mut session, &ack).await;
            assert_eq!(comparison.trim_end(), "t t", "{kind:?}: the message {json}");
            let item = format!(
                "SELECT out_work_item = jsonb_build_object('ActivityExecute', jsonb_build_object('instance', 'i', 'input', '{json}'::jsonb))::text \
                 FROM fetch_work_item({NOW_MS}, {LEASE_MS})"
            );
            assert_eq!(text(&mut session, &item).await, "t", "{kind:?}: the work item of {json}");
        }

        must(&mut session, "SELECT enqueue_orchestrator_work('i', '1', 'epoch')").await;
        let array = format!("jsonb_build_array({})", TEXTS.map(|json| format!("'{json}'::jsonb")).join(", "));
        let history = format!(
            "SELECT concat_ws(' ', out_history = {array}, out_history::text = {array}::text) FROM fetch_orchestration_item({NOW_MS}, {LEASE_MS})"
        );
        assert_eq!(text(&mut session, &history).await, "t t", "{kind:?}: the history");
        let stored: Vec<_> = must(&mut session, "SELECT out_event_data FROM fetch_history('i')").await;
        assert_eq!(stored.concat(), TEXTS.map(|json| Some(json.to_owned())), "{kind:?}: fetch_history");
        for (number, json) in TEXTS.iter().enumerate() {
            let value = format!("SELECT out_value FROM get_kv_value('i', '{number}')");
            assert_eq!(text(&mut session, &value).await, *json, "{kind:?}: the value");
        }
        queue.remove().await;
    }
}

#[tokio::test]
async fn d2_a_work_item_that_is_enqueued_comes_back_byte_for_byte() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        for json in TEXTS {
            must(&mut session, &format!("SELECT enqueue_worker_work('{json}', 0)")).await;
            let item = dispatcher::take(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("it");
            assert_eq!(item.item, json, "{kind:?}");
        }
        queue.remove().await;
    }
}

#[tokio::test]
async fn d2_what_is_nested_too_deep_for_jsonb_is_the_same_error_as_there() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut refused = 0;
    for depth in [1_000, 10_000, 100_000] {
        let json = format!("repeat('[', {depth}) || repeat(']', {depth})");
        let cast = run(&mut session, &format!("SELECT length(({json})::jsonb::text)")).await;
        let door =
            run(&mut session, &format!("SELECT enqueue_orchestrator_work('i', {json}, 'epoch')")).await;
        assert_eq!(door.code(), cast.code(), "{depth} deep");
        if let Some(code) = cast.code() {
            assert_eq!(code, "54001", "{depth} deep");
            refused += 1;
            continue;
        }
        let fetch = format!(
            "WITH turn AS MATERIALIZED (SELECT * FROM fetch_orchestration_item({NOW_MS}, {LEASE_MS})) \
             SELECT concat_ws(' ', out_messages = jsonb_build_array(({json})::jsonb), ack_orchestration_item(out_lock_token, {NOW_MS}, 1, '[]', '[]', '[]', '{{}}')) FROM turn"
        );
        assert_eq!(text(&mut session, &fetch).await.trim_end(), "t", "{depth} deep");
    }
    assert!(refused > 0, "nothing was deep enough for this server");
    queue.remove().await;
}
