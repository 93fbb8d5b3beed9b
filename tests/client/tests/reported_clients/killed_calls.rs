//! G5: a long call that is cut short, in whatever way, has done all or nothing; what it held is free
//! when its lease is over at the latest. That calls end within a second of a timeout is shown in
//! tests/plans_and_memory/cancel.rs.

use super::PATIENCE;
use crate::dispatcher::{code, number, sqlstate, text};
use duroxide_queue_tests::outcome::{must, run, until_it_waits};
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::server;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const EVENTS: i64 = 10_000;
const MESSAGES: i64 = 6_000;

/// The calls that are cut short: an acknowledgement of 10,000 events, a fetch of 6,000 messages, and
/// an acknowledgement that waits for the key of its instance.
const CALLS: [&str; 3] = [
    "SELECT ack_orchestration_item('ours', 1000, 1, (SELECT events FROM delta), '[\"w\"]', '[]', '{}')",
    "SELECT * FROM fetch_orchestration_item(1000, 60000)",
    "SELECT ack_orchestration_item('waiting', 1000, 1, '[]', '[]', '[]', '{}')",
];

const MAKE: &str = "\
    CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q; \
    CREATE TABLE delta AS SELECT jsonb_agg(jsonb_build_object('event_id', n, 'event_type', 'E', \
      'event_data', to_json(repeat('0123456789', 300))::text)) AS events FROM generate_series(1, 10000) n";

/// Two leased instances, and a third one to claim.
const FILL: &str = "\
    TRUNCATE orchestrator_queue, instance_locks, history, worker_queue, instances, executions; \
    INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count) \
      VALUES ('ours', '1', 'epoch', 'epoch', 'ours', 60000, 1), ('waiting', '1', 'epoch', 'epoch', 'waiting', 60000, 1); \
    INSERT INTO instance_locks VALUES ('ours', 'ours', 60000, 1000), ('waiting', 'waiting', 60000, 1000); \
    INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
      SELECT 'many', (SELECT json_agg(n || ' some text')::text FROM generate_series(1, 150) n), 'epoch', 'epoch' FROM generate_series(1, 6000)";

/// Every row that a call could have touched, and the sizes of tables as something to tell.
const STATE: &str = "SELECT concat_ws(' ', \
    (SELECT count(*) || ' messages ' || coalesce(md5(string_agg(concat(id, instance_id, lock_token, locked_until, attempt_count), ',' ORDER BY id)), '') FROM orchestrator_queue), \
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM instance_locks t), (SELECT count(*) FROM history), (SELECT count(*) FROM worker_queue), \
    (SELECT count(*) FROM instances))";

/// How a call is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cancel,
    Terminate,
    KillBackend,
    StopServer,
    KillClient,
}

/// A call under way in a session of its own.
struct Running {
    pid: i64,
    call: JoinHandle<(PgConnection, sqlx::Result<()>)>,
}

async fn on_queue(server: &Server) -> PgConnection {
    server::open(server.options().options([("search_path", "q")])).await
}

async fn begin(server: &Server, call: &'static str) -> Running {
    let mut session = on_queue(server).await;
    let pid = number(&mut session, "SELECT pg_backend_pid()").await;
    // The session outlives its call, so that who looks for it late sees that the call is over.
    let call = tokio::spawn(async move {
        let result = sqlx::query(call).execute(&mut session).await.map(drop);
        (session, result)
    });
    Running { pid, call }
}

/// Whether a backend has been in its call for a while.
async fn is_in_the_middle(watcher: &mut PgConnection, pid: i64) -> bool {
    let limit = Instant::now() + PATIENCE;
    let state = format!(
        "SELECT coalesce(max(CASE WHEN state <> 'active' THEN 'over' WHEN clock_timestamp() > query_start + interval '50 ms' THEN 'middle' END), 'beginning') \
         FROM pg_stat_activity WHERE pid = {pid} AND query LIKE '%orchestration_item%'"
    );
    loop {
        match text(watcher, &state).await.as_str() {
            "middle" => return true,
            "over" => return false,
            _ => assert!(Instant::now() < limit, "backend {pid} does not begin its call"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the server lets somebody in again, and gone backends are gone.
async fn back(server: &Server, gone: &[i64]) -> PgConnection {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Ok(mut session) =
            PgConnection::connect_with(&server.options().options([("search_path", "q")])).await
        {
            let pids = gone.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let left =
                format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({pids}) AND state = 'active'");
            if matches!(sqlx::query_scalar::<_, i64>(&left).fetch_one(&mut session).await, Ok(0)) {
                return session;
            }
        }
        assert!(
            Instant::now() < limit,
            "the server has not come back, or a backend of {gone:?} has not ended"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Starts all three calls and ends them in the middle. False if one was over too early.
async fn cut_short(server: &Server, end: End) -> bool {
    let mut watcher = on_queue(server).await;
    let mut holder = on_queue(server).await;
    must(&mut holder, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('q.waiting'))").await;
    let mut running = Vec::new();
    for call in CALLS {
        running.push(begin(server, call).await);
    }
    until_it_waits(&mut watcher, running[2].pid).await;
    let mut in_time = true;
    for one in &running[..2] {
        in_time &= is_in_the_middle(&mut watcher, one.pid).await;
    }
    let pids: Vec<_> = running.iter().map(|one| one.pid).collect();
    let signal = |function: &str| format!("SELECT {function}(pid) FROM unnest(ARRAY{pids:?}) AS pid");
    let struck = Instant::now();
    match end {
        End::Cancel => drop(must(&mut watcher, &signal("pg_cancel_backend")).await),
        End::Terminate => drop(must(&mut watcher, &signal("pg_terminate_backend")).await),
        End::KillBackend => {
            assert!(server.kill_backend(pids[0] as i32).await, "backend {} is there", pids[0])
        }
        End::StopServer => server.stop_immediately().await,
        End::KillClient => running.iter().for_each(|one| one.call.abort()),
    }
    for one in running {
        match one.call.await {
            Ok((_, Ok(()))) => in_time = false,
            Ok((_, Err(error))) => match end {
                End::Cancel => assert_eq!(sqlstate(&error), code::QUERY_CANCELED, "{error}"),
                // The end of the session may be told, or only be seen.
                End::Terminate if matches!(error, sqlx::Error::Database(_)) => {
                    assert_eq!(sqlstate(&error), "57P01")
                }
                _ => {}
            },
            Err(aborted) => assert!(aborted.is_cancelled() && end == End::KillClient, "{aborted}"),
        }
    }
    if matches!(end, End::Cancel | End::Terminate) {
        assert!(struck.elapsed() < PATIENCE, "{end:?}: over only after {:?}", struck.elapsed());
    }
    if end == End::StopServer {
        server.start_again().await;
    }
    drop(holder);
    drop(back(server, &pids).await);
    in_time
}

/// When the leases are over, each instance that has messages is handed out with all of them.
async fn everything_is_free_after_the_leases(session: &mut PgConnection, expected: &[(&str, i64)]) {
    must(session, "BEGIN").await;
    let fetch = "SELECT out_instance_id || ' ' || jsonb_array_length(out_messages) FROM fetch_orchestration_item(70000, 60000)";
    let mut found = Vec::new();
    while let [row] = &must(session, fetch).await[..] {
        found.push(row[0].clone().expect("an instance"));
    }
    must(session, "ROLLBACK").await;
    found.sort();
    let mut expected: Vec<_> =
        expected.iter().map(|(instance, messages)| format!("{instance} {messages}")).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_call_that_is_killed_in_the_middle_has_done_nothing() {
    let server = Server::start().await;
    must(&mut server.connect().await, MAKE).await;
    let mut session = on_queue(&server).await;
    let unlogged =
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'q'::regnamespace AND relpersistence <> 'p'";
    assert_eq!(number(&mut session, unlogged).await, 0, "a crash would empty such a table");

    for end in [End::Cancel, End::Terminate, End::KillBackend, End::StopServer] {
        let limit = Instant::now() + PATIENCE;
        loop {
            let mut session = on_queue(&server).await;
            must(&mut session, FILL).await;
            let before = text(&mut session, STATE).await;
            let in_time = cut_short(&server, end).await;
            let mut session = on_queue(&server).await;
            if in_time {
                assert_eq!(text(&mut session, STATE).await, before, "{end:?} has left something");
                let all = [("ours", 1), ("waiting", 1), ("many", MESSAGES)];
                everything_is_free_after_the_leases(&mut session, &all).await;
                break;
            }
            assert!(Instant::now() < limit, "{end:?} comes too late each time");
        }
    }

    // A client that is gone is noticed only when it is to be answered: by then a call is done, or not.
    must(&mut on_queue(&server).await, FILL).await;
    cut_short(&server, End::KillClient).await;
    let mut session = on_queue(&server).await;
    let events = number(&mut session, "SELECT count(*) FROM history").await;
    let items = number(&mut session, "SELECT count(*) FROM worker_queue").await;
    let leased = number(&mut session, "SELECT count(*) FROM instance_locks WHERE instance_id = 'ours'").await;
    let acked = if (events, items, leased) == (EVENTS, 1, 0) {
        true
    } else {
        assert_eq!((events, items, leased), (0, 0, 1), "the acknowledgement is done by half");
        false
    };
    let claimed = number(&mut session, "SELECT count(*) FROM orchestrator_queue JOIN instance_locks USING (instance_id, lock_token) WHERE instance_id = 'many'").await;
    assert!([0, MESSAGES].contains(&claimed), "{claimed} messages are claimed");
    println!("the client's end: acknowledged {acked}, claimed {claimed}");
    // The one that waits for a key goes on waiting until it has it.
    let waiting =
        number(&mut session, "SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'waiting'").await;
    let mut expected = vec![("many", MESSAGES)];
    expected.extend((!acked).then_some(("ours", 1)));
    expected.extend((waiting == 1).then_some(("waiting", 1)));
    everything_is_free_after_the_leases(&mut session, &expected).await;
}

#[tokio::test]
async fn g5_timeouts_of_the_session_leave_everything_as_it_was() {
    let server = Server::start().await;
    let mut session = server.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q')").await;
    let mut session = on_queue(&server).await;
    must(&mut session, "SELECT enqueue_orchestrator_work('waiting', '1', 'epoch'); SELECT out_instance_id FROM fetch_orchestration_item(1000, 60000); \
                        UPDATE instance_locks SET lock_token = 'waiting'; UPDATE orchestrator_queue SET lock_token = 'waiting'").await;
    let before = text(&mut session, STATE).await;

    let mut holder = on_queue(&server).await;
    must(&mut holder, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('q.waiting'))").await;
    must(&mut session, "SET lock_timeout = 50").await;
    for call in [
        CALLS[2],
        "SELECT renew_orchestration_item_lock('waiting', 1000, 60)",
        "SELECT abandon_orchestration_item('waiting', 1000)",
        "SELECT delete_instances_atomic(ARRAY['waiting'], true)",
    ] {
        let outcome = run(&mut session, call).await;
        assert_eq!(outcome.code(), Some("55P03"), "{call}: {outcome:?}");
    }
    must(&mut holder, "ROLLBACK").await;
    assert_eq!(text(&mut session, STATE).await, before);

    // Somebody who claims and goes to sleep in the transaction.
    must(&mut session, "SELECT enqueue_orchestrator_work('new', '1', 'epoch')").await;
    let before = text(&mut session, STATE).await;
    let claim = format!("SET idle_in_transaction_session_timeout = 50; BEGIN; {}", CALLS[1]);
    assert_eq!(must(&mut holder, &claim).await.len(), 1);
    let limit = Instant::now() + PATIENCE;
    while number(
        &mut session,
        "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'",
    )
    .await
        > 0
    {
        assert!(Instant::now() < limit, "the session is not ended");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(text(&mut session, STATE).await, before);
    assert_eq!(must(&mut session, CALLS[1]).await.len(), 1, "the instance is free at once");
}
