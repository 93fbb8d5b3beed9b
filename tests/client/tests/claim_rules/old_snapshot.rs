//! E2: a snapshot that somebody holds keeps every dead row, and a fetch does not read them all each
//! time; when it is gone, a vacuum makes everything as it was. Counted in pages, and held against
//! duroxide-pg's own procedures after the same turns.

use crate::cost::Cost;
use crate::dispatcher::text;
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{self, Kind};
use sqlx::postgres::PgConnection;

/// Transactions that go to the server as one text.
const BATCH: usize = 50;
/// Turns under the snapshot, or as many as `make figures` asks for.
fn turns_to_take() -> usize {
    std::env::var("DUROXIDE_QUEUE_FIGURES_TURNS")
        .map_or(1_500, |turns| turns.parse().expect("a number of turns"))
}
/// Looks at one state, of which the middle one counts: some fetch may have to find its place anew.
const LOOKS: usize = 9;

/// A turn with an event and a work item, and that item done under a session of its own.
const TURN: &str = r#"
    BEGIN; SELECT enqueue_orchestrator_work('i' || nextval('number'), '1', 'epoch'); COMMIT;
    BEGIN; SELECT ack_orchestration_item(out_lock_token, 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "1"}]', '[]', '[]', '{}')
      FROM fetch_orchestration_item(1000, 60000); COMMIT;
    BEGIN; SELECT enqueue_worker_work('1', 0, p_session_id => 's' || currval('number')); COMMIT;
    BEGIN; SELECT ack_worker(out_lock_token) FROM fetch_work_item(1000, 60000, 'w', 60000); COMMIT;
    BEGIN; SELECT cleanup_orphaned_sessions(200000); COMMIT;"#;

async fn turns(session: &mut PgConnection, count: usize) {
    let batch = TURN.repeat(BATCH);
    for _ in 0..count / BATCH {
        must(session, &batch).await;
    }
}

/// Pages that a fetch of an instance and one of a work item look at.
async fn pages(session: &mut PgConnection, when: &str) -> [i64; 2] {
    must(session, "SELECT enqueue_orchestrator_work('probe', '1', 'epoch'), enqueue_worker_work('\"probe\"', 0, p_session_id => 'probe')").await;
    let mut pages = [
        ("SELECT out_instance_id FROM fetch_orchestration_item(1000, 60000)", "probe"),
        ("SELECT out_work_item FROM fetch_work_item(1000, 60000, 'w', 60000)", "\"probe\""),
    ]
    .map(|(call, expected)| (call, expected, Vec::new()));
    for _ in 0..LOOKS {
        for (call, expected, seen) in &mut pages {
            seen.push(Cost::of(session, call, expected).await.pages);
        }
    }
    must(session, "DELETE FROM orchestrator_queue; DELETE FROM worker_queue").await;
    pages.map(|(call, _, mut seen)| {
        println!("{when}: {call}: {seen:?}");
        seen.sort_unstable();
        seen[LOOKS / 2]
    })
}

/// Pages that polls of an empty queue look at; and what another session enqueues, older than all that is dead, the next
/// one finds.
async fn pages_of_polls(session: &mut PgConnection, another: &mut PgConnection, when: &str) -> [i64; 2] {
    let polls = [
        "SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item(1000, 60000)",
        "SELECT coalesce(max(out_work_item), 'none') FROM fetch_work_item(1000, 60000, 'w', 60000)",
    ];
    let mut pages = [Vec::new(), Vec::new()];
    for _ in 0..LOOKS {
        for (poll, seen) in polls.iter().zip(&mut pages) {
            seen.push(Cost::of(session, poll, "none").await.pages);
        }
    }
    must(another, "SELECT enqueue_orchestrator_work('late', '1', 'epoch'), enqueue_worker_work('\"late\"', 0, p_session_id => 'late')").await;
    for (poll, late) in polls.iter().zip(["late", "\"late\""]) {
        Cost::of(session, poll, late).await;
    }
    must(another, "DELETE FROM orchestrator_queue; DELETE FROM worker_queue").await;
    pages.map(|mut seen| {
        println!("{when}: polls: {seen:?}");
        seen.sort_unstable();
        seen[LOOKS / 2]
    })
}

async fn vacuum(session: &mut PgConnection) {
    for table in ["orchestrator_queue", "worker_queue", "instance_locks", "sessions"] {
        must(session, &format!("VACUUM {table}")).await;
    }
}

/// What fetches come to before, while and after somebody holds a snapshot.
struct Held {
    at_first: [i64; 2],
    held: [i64; 2],
    polls: [i64; 2],
    by_another: [i64; 2],
    back: [i64; 2],
}

/// A queue in a database of its own: a snapshot of another test in the same one would be held too.
pub async fn queue_alone(kind: Kind) -> Database {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    if kind == Kind::Created {
        must(&mut session, "SELECT duroxide_queue.create_queue('q')").await;
    } else {
        let provider = queue::open(&database.url(), "q", MigrationPolicy::ApplyAll).await;
        provider.pool().close().await;
    }
    if kind == Kind::Adopted {
        must(&mut session, "SELECT duroxide_queue.adopt_queue('q')").await;
    }
    database
}

pub async fn on_queue(database: &Database) -> PgConnection {
    let mut session = database.connect().await;
    must(&mut session, "SET search_path = q").await;
    session
}

async fn under_a_snapshot(kind: Kind, count: usize) -> Held {
    let database = queue_alone(kind).await;
    let mut session = on_queue(&database).await;
    must(&mut session, "CREATE SEQUENCE number").await;
    for table in ["orchestrator_queue", "worker_queue", "instance_locks", "sessions"] {
        must(&mut session, &format!("ALTER TABLE {table} SET (autovacuum_enabled = off)")).await;
    }
    turns(&mut session, BATCH).await;
    vacuum(&mut session).await;
    let at_first = pages(&mut session, &format!("{kind:?}, at first")).await;

    let mut holder = on_queue(&database).await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM orchestrator_queue").await;
    turns(&mut session, count).await;
    let held = pages(&mut session, &format!("{kind:?}, after {count} turns")).await;
    let mut another = on_queue(&database).await;
    let polls = pages_of_polls(&mut session, &mut another, &format!("{kind:?}, the queue empty")).await;
    let by_another = pages(&mut another, &format!("{kind:?}, the same by a new session")).await;

    must(&mut holder, "COMMIT").await;
    vacuum(&mut session).await;
    let back = pages(&mut session, &format!("{kind:?}, when the snapshot is gone")).await;
    println!(
        "figure: pages of a fetch of an instance and of a work item, {kind:?}: {at_first:?}, after {count} turns \
         under a held snapshot {held:?} (by a new session {by_another:?}; polls of the empty queue {polls:?}), when it is gone and vacuumed {back:?}"
    );
    drop((session, holder, another));
    database.remove().await;
    Held { at_first, held, polls, by_another, back }
}

/// Holds our functions against duroxide-pg's, after the same turns under the same snapshot.
async fn assert_flat(kind: Kind) {
    let count = turns_to_take();
    let dead_rows = count as i64;
    let reference = under_a_snapshot(Kind::Reference, count).await;
    for (pages, what) in [(reference.held, "a fetch"), (reference.polls, "a poll")] {
        assert!(pages[0] - reference.at_first[0] > dead_rows / 2, "{what} of the reference does not suffer");
    }

    let ours = under_a_snapshot(kind, count).await;
    for (what, fetch) in ["instance", "work item"].into_iter().enumerate() {
        let at_first = ours.at_first[what];
        for (pages, who) in [(ours.held[what], "the session"), (ours.by_another[what], "a new session")] {
            // Entries of an index lie hundreds to a page, and rows many: less than a look at each.
            assert!(
                pages - at_first <= dead_rows / 5,
                "{kind:?}, {fetch}, {who}: {at_first}, then {pages} pages"
            );
            // Theirs reads 77 or 152 pages for a work item, by whether it has planned anew since; it does not suffer there.
            if fetch == "instance" {
                assert!(pages <= reference.held[what], "{kind:?}, {who}: {pages} pages, theirs less");
            }
        }
        let polls = ours.polls[what];
        assert!(polls <= at_first + dead_rows / 5, "{kind:?}, {fetch}: {polls} pages of an empty poll");
        let back = ours.back[what];
        assert!(back <= at_first * 3 / 2, "{kind:?}, {fetch}: {at_first} pages, {back} without the snapshot");
    }
}

#[tokio::test]
async fn e2_a_held_snapshot_costs_a_fetch_little_and_a_vacuum_brings_it_back() {
    assert_flat(Kind::Created).await;
}

#[tokio::test]
async fn e2_the_same_on_an_adopted_queue() {
    assert_flat(Kind::Adopted).await;
}

/// Where there is nothing to find, the way to the first candidate ends at the last dead row.
#[tokio::test]
async fn e2_polls_of_an_empty_queue_do_not_read_all_that_is_dead_each_time() {
    const DEAD: usize = 60_000;
    const SHORT: i64 = 100;
    let database = queue_alone(Kind::Created).await;
    let mut session = on_queue(&database).await;
    let mut another = on_queue(&database).await;
    must(
        &mut session,
        &format!(
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
               SELECT 'i' || n, '1', 'epoch', 'epoch' FROM generate_series(1, {DEAD}) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at) \
               SELECT '1', 'epoch', 'epoch' FROM generate_series(1, {DEAD})"
        ),
    )
    .await;
    // Makes the plans, as a session at work has.
    must(
        &mut session,
        "BEGIN; SELECT fetch_orchestration_item(1000, 60000); SELECT fetch_work_item(1000, 60000); ROLLBACK",
    )
    .await;
    let mut holder = on_queue(&database).await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM orchestrator_queue").await;
    must(&mut session, "DELETE FROM orchestrator_queue; DELETE FROM worker_queue").await;

    let mut fresh = on_queue(&database).await;
    let poll = "SELECT coalesce(max(out_instance_id), 'none') FROM fetch_orchestration_item(1000, 60000)";
    let whole_way = Cost::of(&mut fresh, poll, "none").await.pages;
    let pages = pages_of_polls(&mut session, &mut another, &format!("{DEAD} dead rows")).await;

    assert!(whole_way > 3 * SHORT, "the way is not long: {whole_way} pages");
    assert!(pages.iter().all(|&pages| pages <= SHORT), "{pages:?} pages, the whole way {whole_way}");
    must(&mut holder, "COMMIT").await;
    drop((session, another, holder, fresh));
    database.remove().await;
}

/// The messages of a turn are looked up by their instance. Planned while nothing is leased, all that is leased looks
/// like less to read; and it would be read by every turn when it is dead, and kept.
#[tokio::test]
async fn e2_what_ends_a_lease_does_not_read_the_leases_that_are_gone() {
    const TURNS: usize = 1_000;
    const CALLS: [&str; 3] = [
        "ack_orchestration_item(out_lock_token, 1000, 1, '[]', '[]', '[]', '{}')::text",
        "renew_orchestration_item_lock(out_lock_token, 1000, 60)::text",
        "abandon_orchestration_item(out_lock_token, 1000)",
    ];
    let database = queue_alone(Kind::Created).await;
    let mut session = on_queue(&database).await;
    must(
        &mut session,
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
         SELECT 'i' || n, '1', 'epoch', 'epoch' FROM generate_series(1, 20000) n",
    )
    .await;
    must(&mut session, "VACUUM ANALYZE orchestrator_queue").await;
    must(&mut session, "VACUUM ANALYZE instance_locks").await;
    let mut holder = on_queue(&database).await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM orchestrator_queue").await;

    let mut entries = Vec::new();
    for when in ["at first", "later"] {
        for call in CALLS {
            let mut seen = Vec::new();
            for _ in 0..LOOKS {
                must(&mut session, "BEGIN").await;
                let token =
                    text(&mut session, "SELECT out_lock_token FROM fetch_orchestration_item(1000, 60000)")
                        .await;
                let end = format!(
                    "SELECT (coalesce({call}, '') <> 'none')::text FROM (SELECT '{token}') turn (out_lock_token)"
                );
                seen.push(Cost::of_open(&mut session, &end, "true").await.entries);
                must(&mut session, "ROLLBACK").await;
            }
            seen.sort_unstable();
            println!("{when}: {call}: {seen:?}");
            entries.push(seen[LOOKS / 2]);
        }
        let turn = "SELECT ack_orchestration_item(out_lock_token, 1000, 1, '[]', '[]', '[]', '{}') \
                    FROM fetch_orchestration_item(1000, 60000);";
        must(&mut session, &format!("BEGIN; {turn} COMMIT;").repeat(TURNS)).await;
    }

    for (call, (at_first, later)) in CALLS.iter().zip(entries[..3].iter().zip(&entries[3..])) {
        assert!(
            later - at_first <= TURNS as i64 / 5,
            "{call}: {at_first} index entries, after {TURNS} turns {later}"
        );
    }
    must(&mut holder, "COMMIT").await;
    drop((session, holder));
    database.remove().await;
}
