//! A standby answers whatever only reads, polls included; after its primary has died it takes over
//! with every lease as it was.

use crate::dispatcher::{self, code, number};
use crate::polling::{FETCHES, READS, fill_with_nothing_to_claim, has_xid};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::own_server::Server;
use sqlx::postgres::PgConnection;
use std::time::{Duration, Instant};

/// How long a standby may take for what its primary has written.
const PATIENCE: Duration = Duration::from_secs(60);

async fn on_queue(server: &Server) -> PgConnection {
    let mut session = server.connect().await;
    must(&mut session, "SET search_path = q").await;
    session
}

/// Waits until the standby has everything that the primary has committed.
async fn catch_up(primary: &mut PgConnection, standby: &mut PgConnection) {
    let written = dispatcher::text(primary, "SELECT pg_current_wal_flush_lsn()").await;
    let limit = Instant::now() + PATIENCE;
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
    while dispatcher::text(standby, &replayed).await != "t" {
        assert!(Instant::now() < limit, "the standby has not come to {written}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn g3_a_standby_reads_and_polls_and_takes_over_with_the_leases() {
    let primary = Server::start().await;
    let mut session = primary.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q",
    )
    .await;
    fill_with_nothing_to_claim(&mut session).await;
    let standby = primary.standby().await;
    let mut there = on_queue(&standby).await;
    catch_up(&mut session, &mut there).await;

    for read in READS {
        let expected = must(&mut session, read).await;
        must(&mut there, "BEGIN").await;
        assert_eq!(must(&mut there, read).await, expected, "{read}");
        assert!(!has_xid(&mut there).await, "{read}");
        must(&mut there, "COMMIT").await;
    }
    for fetch in FETCHES {
        assert_eq!(must(&mut there, fetch).await.len(), 0, "{fetch} of what is leased and in the future");
    }
    must(&mut session, "SELECT enqueue_orchestrator_work('free', '1', 'epoch'), enqueue_worker_work('1', 0)")
        .await;
    catch_up(&mut session, &mut there).await;
    for call in FETCHES.into_iter().chain([
        "SELECT enqueue_worker_work('1', 0)",
        "SELECT append_history('i', 1, '[{\"event_id\": 2, \"event_type\": \"E\", \"event_data\": \"1\"}]')",
        "SELECT renew_session_lock(ARRAY['another'], 1000, 60000, 60000)",
        "SELECT delete_instances_atomic(ARRAY['i'], true)",
    ]) {
        let outcome = run(&mut there, call).await;
        assert_eq!(outcome.code(), Some(code::READ_ONLY_SQL_TRANSACTION), "{call}: {outcome:?}");
    }

    let turn = dispatcher::fetch(&mut session, 1_000, 60_000).await.expect("fetch").expect("free");
    let item = dispatcher::take(&mut session, 1_000, 60_000).await.expect("fetch").expect("one");
    catch_up(&mut session, &mut there).await;
    drop(session);
    primary.stop_immediately().await;
    // The session that has polled stays, and with it the plans that it has made there.
    assert_eq!(dispatcher::text(&mut there, "SELECT pg_promote()").await, "t");

    for session in [&mut there, &mut on_queue(&standby).await] {
        for fetch in FETCHES {
            assert_eq!(must(session, fetch).await.len(), 0, "{fetch}: the leases hold");
        }
    }
    dispatcher::renew(&mut there, &turn.token, 2_000).await.expect("its owner renews the lease");
    dispatcher::ack(&mut there, &turn.token, 50_000).await.expect("and acknowledges");
    // Nobody comes back for the work item: it is free when its lease is over.
    assert_eq!(dispatcher::take(&mut there, 50_000, 1_000).await.expect("fetch"), None);
    let again = dispatcher::take(&mut there, 70_000, 1_000).await.expect("fetch").expect("the lease is over");
    assert_eq!((again.item, again.attempts), (item.item, 2));
    must(&mut there, "SELECT enqueue_orchestrator_work('new', '1', 'epoch')").await;
    let new = dispatcher::fetch(&mut there, 70_000, 1_000).await.expect("fetch").expect("a new one");
    assert_eq!(new.instance, "new");
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(number(&mut there, held).await, 0);
}
