//! Behind pgbouncer, where each transaction may meet another backend.

use crate::greetings::{self, assert_greeted, assert_nothing_is_left, completed, start};
use crate::worker::Language;
use duroxide::Client;
use duroxide_pg::{MigrationPolicy, PostgresProvider, ProviderConfig};
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::pooler::{Pooler, knows_prepared_statements};
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many backends the clients of a pooler in transaction mode share.
const BACKENDS: usize = 4;
/// In session mode each session that is open needs one.
const BACKENDS_OF_SESSIONS: usize = 50;

/// The backends of a pool, and what each of them holds beyond what it was born with: locks on keys, prepared
/// statements, temporary tables, settings.
async fn backends(pooler: &Pooler) -> BTreeSet<(String, String)> {
    const HELD: &str = "SELECT pg_backend_pid(), jsonb_build_object(
        'keys', (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        'statements', (SELECT count(*) FROM pg_prepared_statements),
        'cursors', (SELECT count(*) FROM pg_cursors WHERE name <> ''),
        'tables', (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()),
        'listens', (SELECT count(*) FROM pg_listening_channels()),
        -- pgbouncer itself hands these three on from its clients
        'settings', (SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE source = 'session'
                     AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone')))";
    let mut sessions: Vec<PgConnection> = Vec::new();
    let mut held = BTreeSet::new();
    // As many transactions at once as there are backends, so that each is seen.
    for _ in 0..BACKENDS {
        let mut session = pooler.connect().await;
        must(&mut session, "BEGIN").await;
        let row = must(&mut session, HELD).await.remove(0);
        held.insert((row[0].clone().expect("a pid"), row[1].clone().expect("an object")));
        sessions.push(session);
    }
    for session in &mut sessions {
        must(session, "ROLLBACK").await;
    }
    assert_eq!(held.len(), BACKENDS, "{held:?}");
    held
}

/// One worker's session with the pooler, and the backends that its calls have met.
struct Caller<'a> {
    session: PgConnection,
    queue: &'a str,
    met: Vec<String>,
}

impl Caller<'_> {
    /// Makes a call; returns its columns after the backend's pid.
    async fn call(&mut self, call: &str) -> Vec<Option<String>> {
        let sql = format!("SELECT pg_backend_pid(), f.* FROM {}.{call} f", self.queue);
        let mut row = must(&mut self.session, &sql).await.pop().unwrap_or_else(|| panic!("{sql}: no row"));
        self.met.push(row.remove(0).expect("a pid"));
        row
    }

    /// Checks that the calls since the last time all met different backends.
    fn assert_met_different_backends(&mut self) {
        let met = std::mem::take(&mut self.met);
        let different: BTreeSet<_> = met.iter().collect();
        assert_eq!(different.len(), met.len(), "some calls met the same backend: {met:?}");
    }
}

/// What a lease is lies in rows: each call of a turn goes to another backend, and nothing stays behind in
/// any, not after errors and not after a cancelled call either.
pub async fn each_call_meets_another_backend() {
    let queue = Queue::created().await;
    let pooler = Pooler::start("transaction", BACKENDS, "");
    let born = backends(&pooler).await;
    let mut direct = queue.connect().await;
    let mut client = Caller { session: pooler.connect().await, queue: queue.schema(), met: Vec::new() };
    start(&mut direct, "a", "Greet").await;
    must(&mut direct, "SELECT enqueue_worker_work('{}', 0)").await;
    must(&mut direct, "SELECT enqueue_worker_work('{}', 0)").await;
    let now = now_ms() + 1_000;

    // A turn, given back, taken again, and acknowledged.
    let token = client
        .call(&format!("fetch_orchestration_item({now}, 30000)"))
        .await
        .swap_remove(6)
        .expect("a token");
    client.call(&format!("renew_orchestration_item_lock('{token}', {now}, 60)")).await;
    client.call(&format!("abandon_orchestration_item('{token}', {now})")).await;
    client.assert_met_different_backends();
    let again = client
        .call(&format!("fetch_orchestration_item({now}, 30000)"))
        .await
        .swap_remove(6)
        .expect("a token");
    let refused = must_fail(
        &mut client.session,
        &format!(
            "SELECT {}.ack_orchestration_item('{token}', {now}, 1, '[]', '[]', '[]', '{{}}')",
            client.queue
        ),
    )
    .await;
    assert_eq!((refused.code.as_str(), refused.message.as_str()), ("P0001", "Invalid lock token"));
    must(&mut client.session, "DISCARD ALL").await;
    client.call(&format!("ack_orchestration_item('{again}', {now}, 1, '[]', '[]', '[]', '{{}}')")).await;
    client.assert_met_different_backends();
    assert_eq!(backends(&pooler).await, born, "a turn leaves something in its backends");

    // Two work items: one renewed and acknowledged, one given back.
    let token = client.call(&format!("fetch_work_item({now}, 30000)")).await.swap_remove(1).expect("a token");
    client.call(&format!("renew_work_item_lock('{token}', {now}, 60)")).await;
    client.call(&format!("ack_worker('{token}', 'a', '{{}}', {now})")).await;
    client.assert_met_different_backends();
    let token = client.call(&format!("fetch_work_item({now}, 30000)")).await.swap_remove(1).expect("a token");
    client.call(&format!("abandon_work_item('{token}', {now}, 0)")).await;
    client.assert_met_different_backends();
    assert_eq!(backends(&pooler).await, born, "work items leave something in their backends");

    // A call that waits for the instance's key, and is cancelled while it does.
    let token = client
        .call(&format!("fetch_orchestration_item({now}, 30000)"))
        .await
        .swap_remove(6)
        .expect("a token");
    let key = format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('{}.a'))", client.queue);
    must(&mut direct, &key).await;
    let waiting = format!(
        "BEGIN; SET LOCAL statement_timeout = 100; SELECT {}.abandon_orchestration_item('{token}', {now})",
        client.queue
    );
    assert_eq!(must_fail(&mut client.session, &waiting).await.code, "57014");
    must(&mut client.session, "ROLLBACK").await;
    must(&mut direct, "ROLLBACK").await;
    assert_eq!(backends(&pooler).await, born, "a cancelled call leaves something in its backend");
    client.call(&format!("abandon_orchestration_item('{token}', {now})")).await;

    drop(client);
    drop(pooler);
    queue.remove().await;
}

/// Every worker as it is, through pgbouncer.
pub async fn all_languages_through_a_pooler() {
    let pooler = Pooler::start("transaction", BACKENDS, "");
    // Java's driver recovers from a statement that a backend lacks, not from one that another worker has prepared there.
    let languages = [&Language::ALL[..], &[Language::Java]].concat();
    crate::share(&pooler.url(), &languages).await;
}

#[tokio::test]
async fn duroxide_pg_works_behind_pgbouncer_in_session_mode() {
    let pooler = Pooler::start("session", BACKENDS_OF_SESSIONS, "");
    let queue = Queue::created().await;
    let provider = open(&pooler, &queue).await.expect("it opens");
    let mut session = queue.connect().await;
    start(&mut session, "a", "Greet").await;
    let runtime = greetings::duroxide(provider.clone()).await;
    completed(&mut session, 1).await;
    runtime.shutdown(None).await;
    assert_greeted(&queue, &provider, "a").await;
    assert_nothing_is_left(&mut session).await;
    provider.pool().close().await;
    drop(pooler);
    queue.remove().await;
}

/// duroxide-pg prepares each statement under a name, always, and runs it in a second round trip: in transaction mode
/// that takes a pgbouncer which takes the statement to the backend where it is run.
#[tokio::test]
async fn duroxide_pg_behind_pgbouncer_in_transaction_mode_wants_1_21() {
    let pooler = Pooler::start("transaction", BACKENDS, "");
    let queue = Queue::created().await;
    backends(&pooler).await; // a pool of one backend would do

    let outcome = async {
        let provider = open(&pooler, &queue).await?;
        let client = Client::new(provider);
        for n in 0..20 {
            let instance = format!("i{n}");
            client.start_orchestration(&instance, "Greet", "").await.map_err(|error| error.to_string())?;
            client.get_orchestration_status(&instance).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    match outcome.await {
        Ok(()) => assert!(knows_prepared_statements(), "it works: examples/README.md says that it does not"),
        Err::<_, String>(error) => {
            assert!(!knows_prepared_statements() && error.contains("prepared statement"), "{error}");
        }
    }
    drop(pooler);
    queue.remove().await;
}

/// Opens the unmodified client through a pooler.
async fn open(pooler: &Pooler, queue: &Queue) -> Result<Arc<PostgresProvider>, String> {
    let mut config = ProviderConfig::url(pooler.url());
    config.schema_name = Some(queue.schema().to_owned());
    config.migration_policy = MigrationPolicy::VerifyOnly;
    PostgresProvider::new_with_config(config).await.map(Arc::new).map_err(|error| format!("{error:#}"))
}
