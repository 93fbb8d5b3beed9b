//! A fetch never waits for an instance that another session holds: it takes free work or none.

use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long the competitor keeps the instance from whoever waits for it.
const HELD: Duration = Duration::from_secs(3);
const LEASE: Duration = Duration::from_secs(60);
/// The fault that duroxide-pg's own procedure must show, or these tests show nothing.
const BLOCKED: Duration = Duration::from_secs(2);
/// What the best of several fetches keeps, whatever else the machine does.
const TYPICAL: Duration = Duration::from_millis(50);
/// What every fetch keeps.
const AT_MOST: Duration = Duration::from_millis(250);

const TRIES: u32 = 5;
const SERIES: usize = 5;
const _: () = assert!(AT_MOST.as_millis() * (TRIES as u128) < HELD.as_millis());

#[tokio::test]
async fn the_reference_blocks_behind_a_contended_instance() {
    let queue = Queue::reference().await;
    let mut session = queue.connect().await;
    enqueue(&mut session, "busy", 0).await;
    let mut competitor = Competitor::holding(&queue, "busy").await;

    let fetch = competitor.hold_during(timed_fetch(&mut session, LEASE)).await;

    assert!(
        fetch.took > BLOCKED,
        "the reference answered after {:?}: the competitor does not contend, so nothing that \
         the other tests of this file say counts",
        fetch.took
    );
    println!("reference, contended: blocked for {:?}", fetch.took);
    queue.remove().await;
}

#[tokio::test]
async fn a_contended_instance_is_skipped_on_a_created_queue() {
    within_limits(Kind::Created, "contended alone", contended_alone_gives_no_row).await;
}

#[tokio::test]
async fn a_contended_instance_is_skipped_on_an_adopted_queue() {
    within_limits(Kind::Adopted, "contended alone", contended_alone_gives_no_row).await;
}

#[tokio::test]
async fn free_work_behind_a_contended_instance_is_claimed_on_a_created_queue() {
    within_limits(Kind::Created, "contended, with other work", free_work_is_claimed).await;
}

#[tokio::test]
async fn free_work_behind_a_contended_instance_is_claimed_on_an_adopted_queue() {
    within_limits(Kind::Adopted, "contended, with other work", free_work_is_claimed).await;
}

#[tokio::test]
async fn an_uncontended_claim_holds_for_the_full_timeout_on_a_created_queue() {
    uncontended_lease_is_full(Queue::created().await).await;
}

#[tokio::test]
async fn an_uncontended_claim_holds_for_the_full_timeout_on_an_adopted_queue() {
    uncontended_lease_is_full(Queue::adopted().await).await;
}

async fn contended_alone_gives_no_row(queue: Queue) -> Vec<Duration> {
    let mut session = queue.connect().await;
    enqueue(&mut session, "busy", 0).await;
    let mut competitor = Competitor::holding(&queue, "busy").await;

    let tries = async {
        let mut times = Vec::new();
        for _ in 0..TRIES {
            let fetch = timed_fetch(&mut session, LEASE).await;
            times.push(fetch.took);
            assert_eq!(fetch.claim, None, "after {times:?}");
        }
        times
    };
    let times = competitor.hold_during(tries).await;

    assert_eq!(leases(&mut session).await, [], "a fetch that claims nothing leaves no lock row");
    assert_eq!(attempts(&mut session, "busy").await, 0);

    let after = timed_fetch(&mut session, LEASE).await;
    assert_eq!(after.instance(), Some("busy"), "free again, so claimable");
    queue.remove().await;
    times
}

async fn free_work_is_claimed(queue: Queue) -> Vec<Duration> {
    let mut session = queue.connect().await;
    enqueue(&mut session, "busy", 1000).await;
    for number in 0..TRIES {
        enqueue(&mut session, &format!("free-{number}"), 0).await;
    }
    let mut competitor = Competitor::holding(&queue, "busy").await;

    let tries = async {
        let mut times = Vec::new();
        for number in 0..TRIES {
            let fetch = timed_fetch(&mut session, LEASE).await;
            times.push(fetch.took);
            let oldest_free = format!("free-{number}");
            assert_eq!(fetch.instance(), Some(&*oldest_free), "after {times:?}");
        }
        times
    };
    let times = competitor.hold_during(tries).await;

    assert_eq!(attempts(&mut session, "busy").await, 0);
    queue.remove().await;
    times
}

async fn uncontended_lease_is_full(queue: Queue) {
    let mut session = queue.connect().await;
    for (instance, timeout) in [("short", LEASE), ("long", Duration::from_secs(90))] {
        enqueue(&mut session, instance, 0).await;

        let fetch = timed_fetch(&mut session, timeout).await;

        let (claimed, token) = fetch.claim.clone().expect("nothing contends");
        assert_eq!(claimed, instance);
        assert!(token.starts_with("lock_"), "lock tokens of the reference begin so, this one is {token}");
        let (_, until) = leases(&mut session)
            .await
            .into_iter()
            .find(|(holder, _)| *holder == token)
            .expect("a claim has a lock row under its token");
        let timeout_ms = i64::try_from(timeout.as_millis()).expect("seconds");
        let full = fetch.called_ms + timeout_ms..=fetch.answered_ms + timeout_ms + 1;
        assert!(
            full.contains(&until),
            "the lease ends at {until}, which is not {timeout:?} after a moment of the call \
             ({full:?})"
        );
        println!(
            "{}, uncontended: lease of {} ms left when the call returned",
            queue.kind().name(),
            until - fetch.answered_ms
        );
    }
    queue.remove().await;
}

/// Best and worst of a series of fetches against the two limits. That the keys were held all the while follows:
/// within the limits, all tries together take less than `HELD`. A series in which the machine stood still is
/// repeated; a fetch that waits does so in each of them.
async fn within_limits(kind: Kind, what: &str, series: impl AsyncFn(Queue) -> Vec<Duration>) {
    assert_ne!(kind, Kind::Reference);
    let mut all = Vec::new();
    for _ in 0..SERIES {
        let times = series(Queue::make(kind).await).await;
        println!("{}, {what}: {times:?}", kind.name());
        let best = times.iter().min().expect("there were tries");
        let worst = times.iter().max().expect("there were tries");
        if *best <= TYPICAL && *worst <= AT_MOST {
            return;
        }
        all.push(times);
    }
    panic!("{what}: the best over {TYPICAL:?} or one over {AT_MOST:?} in {all:?}");
}

/// One answer of `fetch_orchestration_item`.
struct Fetch {
    /// Instance and lock token, if there was a row.
    claim: Option<(String, String)>,
    called_ms: i64,
    answered_ms: i64,
    took: Duration,
}

impl Fetch {
    fn instance(&self) -> Option<&str> {
        self.claim.as_ref().map(|(instance, _)| instance.as_str())
    }
}

async fn timed_fetch(session: &mut PgConnection, lease: Duration) -> Fetch {
    let start = Instant::now();
    let called_ms = now_ms();
    let claim =
        sqlx::query_as("SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item($1, $2)")
            .bind(called_ms)
            .bind(i64::try_from(lease.as_millis()).expect("seconds"))
            .fetch_optional(session)
            .await
            .expect("fetch_orchestration_item");
    Fetch { claim, called_ms, answered_ms: now_ms(), took: start.elapsed() }
}

/// Enqueues the start of an instance, visible since `age_ms`.
async fn enqueue(session: &mut PgConnection, instance: &str, age_ms: i64) {
    sqlx::query(
        "SELECT enqueue_orchestrator_work($1, $2, to_timestamp($3::numeric / 1000), 'O', '1.0.0', 1)",
    )
    .bind(instance)
    .bind(format!(
        r#"{{"StartOrchestration":{{"instance":"{instance}","orchestration":"O","input":"","version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}}}"#
    ))
    .bind(now_ms() - age_ms)
    .execute(session)
    .await
    .expect("enqueue_orchestrator_work");
}

/// Token and end of every instance lease.
async fn leases(session: &mut PgConnection) -> Vec<(String, i64)> {
    sqlx::query_as("SELECT lock_token, locked_until FROM instance_locks")
        .fetch_all(session)
        .await
        .expect("instance_locks")
}

async fn attempts(session: &mut PgConnection, instance: &str) -> i32 {
    sqlx::query_scalar("SELECT max(attempt_count) FROM orchestrator_queue WHERE instance_id = $1")
        .bind(instance)
        .fetch_one(session)
        .await
        .expect("orchestrator_queue")
}

/// A session that holds the key of one instance in an open transaction.
struct Competitor {
    session: PgConnection,
    since: Instant,
}

impl Competitor {
    /// Takes the key that ours scope by schema, and the unscoped one that the reference takes.
    async fn holding(queue: &Queue, instance: &str) -> Competitor {
        let mut session = queue.connect().await;
        sqlx::raw_sql("BEGIN").execute(&mut session).await.expect("BEGIN");
        sqlx::query(
            "SELECT pg_advisory_xact_lock(hashtext($1 || '.' || $2)), \
                    pg_advisory_xact_lock(hashtext($2))",
        )
        .bind(queue.schema())
        .bind(instance)
        .execute(&mut session)
        .await
        .expect("nobody else holds the keys of this instance");
        Competitor { session, since: Instant::now() }
    }

    /// Holds the keys until the work is done, but no longer than `HELD`: work that waits for them
    /// comes to an end too, only late.
    async fn hold_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let left = HELD.saturating_sub(self.since.elapsed());
        let in_time = tokio::time::timeout(left, &mut work).await;
        sqlx::raw_sql("COMMIT").execute(&mut self.session).await.expect("COMMIT");
        match in_time {
            Ok(done) => done,
            Err(_) => work.await,
        }
    }
}
