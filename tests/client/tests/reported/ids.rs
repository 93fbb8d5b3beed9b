//! D4: names at the limit of what an index holds: what is accepted can be worked with, what is not is
//! an error of that call alone. (Names of every other kind are in pg_regress/sql/arguments.sql.)

use crate::dispatcher::{self, number};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;

const LEASE_MS: i64 = 30_000;
const TOO_LARGE: &str = "54000";

/// SQL for a text of that many bytes that compresses badly.
fn long(bytes: usize) -> String {
    format!("(SELECT left(string_agg(md5(n::text), ''), {bytes}) FROM generate_series(1, 120) n)")
}

/// Lengths around the limit, across which a name goes from accepted to refused.
fn lengths() -> impl Iterator<Item = usize> {
    [2_600].into_iter().chain((2_640..=2_960).step_by(8)).chain([3_200])
}

/// Whether the statement was accepted; anything but 54000 is a failure.
async fn accepted(session: &mut PgConnection, statement: &str) -> bool {
    let outcome = run(session, statement).await;
    assert!(matches!(outcome.code(), None | Some(TOO_LARGE)), "{statement}: {outcome:?}");
    outcome.code().is_none()
}

#[tokio::test]
async fn d4_an_instance_whose_id_is_accepted_can_be_claimed_and_stops_nobody() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let (mut taken, mut refused, mut turns_refused) = (0, 0, 0);
    for bytes in lengths() {
        let id = long(bytes);
        if !accepted(&mut session, &format!("SELECT enqueue_orchestrator_work({id}, '1', 'epoch')")).await {
            refused += 1;
            assert_eq!(number(&mut session, "SELECT count(*) FROM orchestrator_queue").await, 0);
            continue;
        }
        taken += 1;
        must(&mut session, "SELECT enqueue_orchestrator_work('other', '1', to_timestamp(1))").await;
        let now_ms = now_ms();

        let turn = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("it");
        let other = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("other");

        assert_eq!((turn.instance.len(), other.instance.as_str()), (bytes, "other"));
        dispatcher::ack(&mut session, &other.token, now_ms).await.expect("ack");
        // The keys of history and executions are longer than the id, so a turn may be refused: whole,
        // and again when it is tried again, until its owner gives it up.
        let ack = format!(
            "SELECT ack_orchestration_item('{}', {now_ms}, 1, '[{{\"event_id\": 1, \"event_type\": \"E\", \"event_data\": \"1\"}}]', '[{{}}]', '[]', \
             '{{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\", \"kv_mutations\": [{{\"action\": \"set\", \"key\": \"k\", \"value\": \"v\"}}]}}')",
            turn.token
        );
        if !accepted(&mut session, &ack).await {
            turns_refused += 1;
            assert!(!accepted(&mut session, &ack).await, "{bytes}: refused only once");
            let traces = "SELECT (SELECT count(*) FROM history) + (SELECT count(*) FROM worker_queue) + (SELECT count(*) FROM instances)";
            assert_eq!(number(&mut session, traces).await, 0, "{bytes}: part of a turn");
            dispatcher::abandon(&mut session, &turn.token, now_ms).await.expect("abandon");
        }
        must(&mut session, &format!("SELECT delete_instances_atomic(ARRAY[{id}, 'other'], true); TRUNCATE worker_queue, orchestrator_queue")).await;
    }
    println!("{taken} lengths accepted, {refused} refused, {turns_refused} with turns that were refused");
    assert!(taken > 0 && refused > 0, "the lengths do not cross the limit");
    queue.remove().await;
}

#[tokio::test]
async fn d4_sessions_tags_and_keys_at_the_limit_stop_nobody() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut refused = [0; 3];
    for bytes in lengths() {
        let name = long(bytes);
        for (what, argument) in ["p_session_id", "p_tag"].into_iter().enumerate() {
            let enqueue = format!("SELECT enqueue_worker_work('\"odd\"', 0, {argument} => {name})");
            refused[what] += usize::from(!accepted(&mut session, &enqueue).await);
            must(&mut session, "SELECT enqueue_worker_work('\"plain\"', 1000)").await;
            let mut items = Vec::new();
            for _ in 0..3 {
                let take = format!(
                    "SELECT out_work_item FROM fetch_work_item({}, {LEASE_MS}, 'w', {LEASE_MS}, ARRAY[{name}], 'default_and')",
                    now_ms()
                );
                items.extend(must(&mut session, &take).await.concat().into_iter().flatten());
            }
            let expected = number(&mut session, "SELECT count(*) FROM worker_queue").await;
            assert!(items.contains(&"\"plain\"".to_owned()), "{argument}, {bytes} bytes: {items:?}");
            assert_eq!(items.len() as i64, expected, "{argument}, {bytes} bytes: {items:?}");
            must(&mut session, "TRUNCATE worker_queue, sessions").await;
        }

        dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
        let now_ms = now_ms();
        let turn = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("i");
        let ack = format!(
            "SELECT ack_orchestration_item('{}', {now_ms}, 1, '[]', '[]', '[]', jsonb_build_object('orchestration_name', 'O', 'orchestration_version', '1', \
             'status', 'Completed', 'kv_mutations', jsonb_build_array(jsonb_build_object('action', 'set', 'key', {name}, 'value', 'v'))))",
            turn.token
        );
        if !accepted(&mut session, &ack).await {
            refused[2] += 1;
            assert!(!accepted(&mut session, &ack).await, "{bytes}: refused only once");
            dispatcher::ack(&mut session, &turn.token, now_ms).await.expect("a turn without the key");
        }
        must(&mut session, "SELECT delete_instances_atomic(ARRAY['i'], true)").await;
    }
    println!("refused: {} session ids, {} tags, {} keys", refused[0], refused[1], refused[2]);
    assert!(refused[0] > 0 && refused[2] > 0, "the lengths do not cross the limit");
    queue.remove().await;
}
