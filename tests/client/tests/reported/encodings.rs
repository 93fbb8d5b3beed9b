//! D7: in a database of another encoding, names and payloads are what its text is: found again, never
//! encoded twice, and no bytes are taken for UTF-8 that are none.
//!
//! These clients talk UTF-8, so the server converts on the way in and out. (duroxide-pg's own migrations
//! need a database in UTF-8, so there is no reference to compare with.)

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
const LEASE_MS: i64 = 30_000;

async fn queue_in(encoding: &str) -> (Database, PgConnection) {
    let database = Database::encoded(encoding).await;
    let mut session = database.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q",
    )
    .await;
    (database, session)
}

#[tokio::test]
async fn d7_names_and_payloads_survive_latin1_and_euc_jp() {
    for (encoding, name, escaped) in [
        ("LATIN1", "café", r"caf\u00e9"),
        ("EUC_JP", "日本", r"\u65e5\u672c"),
        ("EUC_JP", "café", r"caf\u00e9"),
    ] {
        let (database, mut session) = queue_in(encoding).await;
        must(
            &mut session,
            &format!(
                "SELECT enqueue_orchestrator_work('{name}', '{{\"x\": \"{name}\"}}', 'epoch'), enqueue_orchestrator_work('{name}', '{{\"x\": \"{escaped}\"}}', 'epoch'), \
                        enqueue_worker_work('{{\"x\": \"{name}\"}}', 0, '{name}', p_tag => '{name}')"
            ),
        )
        .await;

        let turn = dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("it");
        // The names in an acknowledgement come by way of jsonb, with and without escapes.
        must(
            &mut session,
            &format!(
                "SELECT ack_orchestration_item('{}', {NOW_MS}, 1, '[{{\"event_id\": 1, \"event_type\": \"{name}\", \"event_data\": \"\\\"{escaped}\\\"\"}}]', '[]', \
                   '[{{\"ExternalRaised\": {{\"instance\": \"{escaped}\"}}}}]', \
                   '{{\"orchestration_name\": \"{escaped}\", \"orchestration_version\": \"1\", \"kv_mutations\": [{{\"action\": \"set\", \"key\": \"{escaped}\", \"value\": \"{name}\"}}]}}')",
                turn.token
            ),
        )
        .await;
        let second =
            dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("it again");

        let messages = format!("[{{\"x\": \"{name}\"}}, {{\"x\": \"{name}\"}}]");
        assert_eq!((turn.instance.as_str(), turn.messages), (name, messages), "{encoding}");
        assert_eq!(second.instance, name, "{encoding}");
        for (query, expected) in [
            (
                format!("SELECT string_agg(out_event_data, ' ') FROM fetch_history('{name}')"),
                format!("\"{name}\""),
            ),
            (format!("SELECT orchestration_name FROM get_instance_info('{name}')"), name.to_owned()),
            (format!("SELECT out_value FROM get_kv_value('{name}', '{name}')"), name.to_owned()),
            (
                format!(
                    "SELECT out_work_item FROM fetch_work_item({NOW_MS}, {LEASE_MS}, NULL, NULL, ARRAY['{name}'], 'tags')"
                ),
                format!("{{\"x\": \"{name}\"}}"),
            ),
        ] {
            let got = text(&mut session, &query).await;
            // An event is stored as it was written, escapes and all.
            assert_eq!(got.replace(escaped, name), expected, "{encoding}: {query}");
        }
        drop(session);
        database.remove().await;
    }
}

#[tokio::test]
async fn d7_an_escape_that_latin1_has_no_character_for_stops_nobody() {
    let euro = r#"{"x": "\u20ac"}"#;
    let (database, mut session) = queue_in("LATIN1").await;

    let door =
        must_fail(&mut session, &format!("SELECT enqueue_orchestrator_work('bad', '{euro}', 'epoch')")).await;
    must(
        &mut session,
        &format!(
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('bad', '{euro}', 'epoch', 'epoch'); \
             SELECT enqueue_orchestrator_work('good', '1', to_timestamp(1))"
        ),
    )
    .await;
    let turn = dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("good work");

    let cast = run(&mut session, &format!("SELECT '{euro}'::jsonb")).await;
    assert_eq!((cast.code(), door.code.as_str()), (Some("22P05"), "22P05"));
    assert_eq!(turn.instance, "good");
    assert_eq!(
        text(&mut session, "SELECT sqlstate || ' ' || work_item FROM dead_letters").await,
        format!("22P05 {euro}")
    );
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn d7_a_work_item_that_a_client_has_no_characters_for_is_left_to_another() {
    let (database, mut session) = queue_in("UTF8").await;
    must(
        &mut session,
        r#"SELECT enqueue_worker_work('"€"', 1), enqueue_worker_work('"1"', 2), enqueue_worker_work('"2"', 3);
           SET client_encoding = LATIN1"#,
    )
    .await;

    // The second claim of a session goes another way than the first.
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(dispatcher::take(&mut session, NOW_MS, LEASE_MS).await.expect("a fetch"));
    }
    must(&mut session, "SET client_encoding = UTF8").await;
    let left = dispatcher::take(&mut session, NOW_MS, LEASE_MS).await.expect("a fetch").expect("the item");

    assert_eq!(
        taken.iter().flatten().map(|item| item.item.as_str()).collect::<Vec<_>>(),
        [r#""1""#, r#""2""#]
    );
    assert_eq!((left.item.as_str(), left.attempts), (r#""€""#, 1));
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn d7_bytes_of_any_kind_are_text_in_sql_ascii() {
    let (database, mut session) = queue_in("SQL_ASCII").await;
    // The byte E9 is é in Latin-1 and nothing in UTF-8, where é is C3 A9: two names.
    must(
        &mut session,
        "SELECT enqueue_orchestrator_work(chr(233), '{\"x\": \"' || chr(233) || '\"}', 'epoch'), enqueue_orchestrator_work('é', '\"é\"', to_timestamp(1)), \
                enqueue_worker_work('\"' || chr(233) || '\"', 0)",
    )
    .await;

    // A client that talks UTF-8 cannot be sent the first: it gets the second, and no error.
    let turn = dispatcher::fetch(&mut session, NOW_MS, LEASE_MS).await.expect("fetch").expect("the second");
    let item = dispatcher::take(&mut session, NOW_MS, LEASE_MS).await.expect("fetch");
    assert_eq!((turn.instance.as_str(), turn.messages.as_str()), ("é", "[\"é\"]"));
    assert_eq!(item, None);
    let attempts = "SELECT (SELECT sum(attempt_count) FROM orchestrator_queue WHERE instance_id = chr(233)) + (SELECT sum(attempt_count) FROM worker_queue)";
    assert_eq!(number(&mut session, attempts).await, 0);

    // One that takes bytes as they are gets it as it went in.
    must(&mut session, "SET client_encoding = SQL_ASCII").await;
    let claim = format!(
        "SELECT encode(out_instance_id::bytea, 'hex') || ' ' || encode((out_messages->0->>'x')::bytea, 'hex') || ' ' || out_attempt_count \
         FROM fetch_orchestration_item({NOW_MS}, {LEASE_MS})"
    );
    let take =
        format!("SELECT encode(out_work_item::bytea, 'hex') FROM fetch_work_item({NOW_MS}, {LEASE_MS})");
    assert_eq!(text(&mut session, &claim).await, "e9 e9 1");
    assert_eq!(text(&mut session, &take).await, "22e922");
    must(
        &mut session,
        &format!(
            "SELECT ack_orchestration_item(lock_token, {NOW_MS}, 1, '[]', '[]', jsonb_build_array(jsonb_build_object('ExternalRaised', jsonb_build_object('instance', chr(233)))), \
               '{{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\"}}') FROM instance_locks WHERE instance_id = chr(233)"
        ),
    )
    .await;
    assert_eq!(text(&mut session, &claim.replace("->0->>'x'", "->>0")).await.split(' ').next(), Some("e9"));
    drop(session);
    database.remove().await;
}

/// jsonb hands out the characters themselves where a text has escapes of them.
#[tokio::test]
async fn d7_escapes_of_characters_that_a_client_has_not_stop_nobody() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        r#"SELECT enqueue_orchestrator_work('message', '{"data": "\u65e5"}', 'epoch'), enqueue_orchestrator_work('replacement', '"\ufffd"', 'epoch'), enqueue_orchestrator_work('event', '1', 'epoch'),
                  enqueue_orchestrator_work('store', '1', 'epoch'), enqueue_orchestrator_work('name', '1', 'epoch'), enqueue_orchestrator_work('plain', '"\u00e9"', 'epoch');
           INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at)
             VALUES ('event', 'O', 'epoch', 'epoch'), ('store', 'O', 'epoch', 'epoch'), ('name', U&'O\65e5', 'epoch', 'epoch');
           INSERT INTO history VALUES ('event', 1, 1, 'E', '"\u65e5"', 'epoch');
           INSERT INTO kv_store VALUES ('store', 'k', U&'\65e5', 1, 1)"#,
    )
    .await;
    let fetch = "SELECT concat_ws(' ', out_instance_id, out_orchestration_name, out_history::text LIKE '%undeliverable%', out_kv_snapshot::text LIKE '%undeliverable%')
                 FROM fetch_orchestration_item(1000, 600000)";
    must(&mut session, "SET client_encoding = LATIN1").await;
    for expected in ["event O t f", "store O f t", "name O??? f f", "plain Unknown f f"] {
        assert_eq!(run(&mut session, fetch).await.value(), expected);
    }
    assert!(must(&mut session, fetch).await.is_empty());
    must(&mut session, "SET client_encoding = UTF8").await;
    assert_eq!(
        run(&mut session, "SELECT out_instance_id FROM fetch_orchestration_item(1000, 600000)").await.value(),
        "message"
    );
    queue.remove().await;
}
