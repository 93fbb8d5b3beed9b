//! One message, many claimants: an instance is held by one token at a time, its messages come
//! together and in order, and no work item is handed out twice.

use crate::dispatcher::{self, code, sqlstate};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use std::collections::{BTreeMap, BTreeSet};

const SESSIONS: usize = 32;
const INSTANCES: usize = 200;
const MESSAGES: usize = 3;
const WORK_ITEMS: usize = 3_000;
const LONG_MS: i64 = 600_000;

/// Three messages for each instance, one instance's between those of the others.
async fn filled() -> Queue {
    let queue = Queue::created().await;
    must(
        &mut queue.connect().await,
        &format!(
            "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
             SELECT 'i' || i, m || '', 'epoch', 'epoch' \
             FROM generate_series(1, {MESSAGES}) m, generate_series(1, {INSTANCES}) i ORDER BY m, i"
        ),
    )
    .await;
    queue
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_an_instance_is_handed_out_once_with_all_its_messages_in_order() {
    let queue = filled().await;

    let mut dispatchers = Vec::new();
    for _ in 0..SESSIONS {
        let mut session = queue.connect().await;
        dispatchers.push(tokio::spawn(async move {
            let mut turns = Vec::new();
            while let Some(turn) = dispatcher::fetch(&mut session, now_ms(), LONG_MS).await.expect("fetch") {
                turns.push(turn);
            }
            turns
        }));
    }
    let mut turns = Vec::new();
    for dispatcher in dispatchers {
        turns.extend(dispatcher.await.expect("a dispatcher ends well"));
    }

    let instances: BTreeSet<_> = turns.iter().map(|turn| &turn.instance).collect();
    let tokens: BTreeSet<_> = turns.iter().map(|turn| &turn.token).collect();
    assert_eq!((turns.len(), instances.len(), tokens.len()), (INSTANCES, INSTANCES, INSTANCES));
    for turn in &turns {
        assert_eq!((turn.messages.as_str(), turn.attempts), ("[1, 2, 3]", 1), "{turn:?}");
    }
    let mut session = queue.connect().await;
    let consistent = "SELECT count(*) FROM orchestrator_queue q JOIN instance_locks l USING (instance_id, lock_token, locked_until)";
    assert_eq!(dispatcher::number(&mut session, consistent).await, (INSTANCES * MESSAGES) as i64);
    queue.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_under_leases_of_a_millisecond_each_message_is_acknowledged_once() {
    let queue = filled().await;

    let mut dispatchers = Vec::new();
    for _ in 0..SESSIONS {
        let mut session = queue.connect().await;
        dispatchers.push(tokio::spawn(async move {
            let mut consumed = Vec::new();
            let mut lost = 0;
            loop {
                let now = now_ms();
                let Some(turn) = dispatcher::fetch(&mut session, now, 1).await.expect("fetch") else {
                    if empty(&mut session).await {
                        return (consumed, lost);
                    }
                    continue;
                };
                // By the clock that it claimed with, the lease may or may not be over.
                match dispatcher::ack(&mut session, &turn.token, now).await {
                    Ok(()) => consumed.push(turn),
                    Err(error) => {
                        assert_eq!(sqlstate(&error), code::RAISE_EXCEPTION, "{error}");
                        lost += 1;
                    }
                }
            }
        }));
    }
    let mut consumed = BTreeMap::<String, String>::new();
    let mut lost = 0;
    for dispatcher in dispatchers {
        let (turns, lost_here) = dispatcher.await.expect("a dispatcher ends well");
        lost += lost_here;
        for turn in turns {
            let before = consumed.insert(turn.instance.clone(), turn.messages);
            assert_eq!(before, None, "the messages of {} were acknowledged twice", turn.instance);
        }
    }

    println!("{lost} leases were over before their acknowledgement");
    assert_eq!(consumed.len(), INSTANCES);
    assert!(consumed.values().all(|messages| messages == "[1, 2, 3]"), "{consumed:?}");
    queue.remove().await;
}

async fn empty(session: &mut sqlx::PgConnection) -> bool {
    let empty = "SELECT NOT EXISTS (SELECT FROM orchestrator_queue)";
    sqlx::query_scalar(empty).fetch_one(session).await.expect("orchestrator_queue")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_each_work_item_is_handed_out_exactly_once() {
    let queue = Queue::created().await;
    must(
        &mut queue.connect().await,
        &format!("SELECT enqueue_worker_work(n || '', 0) FROM generate_series(1, {WORK_ITEMS}) n"),
    )
    .await;

    let mut workers = Vec::new();
    for _ in 0..SESSIONS / 2 {
        let mut session = queue.connect().await;
        workers.push(tokio::spawn(async move {
            let mut items = Vec::new();
            while let Some(item) = dispatcher::take(&mut session, now_ms(), LONG_MS).await.expect("fetch") {
                assert_eq!(item.attempts, 1, "{item:?}");
                items.push(item.item.parse::<usize>().expect("a number"));
            }
            items
        }));
    }
    let mut handed_out = Vec::new();
    for worker in workers {
        handed_out.extend(worker.await.expect("a worker ends well"));
    }

    handed_out.sort_unstable();
    assert_eq!(handed_out, (1..=WORK_ITEMS).collect::<Vec<_>>());
    queue.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_under_leases_of_a_millisecond_each_work_item_is_acknowledged_once() {
    const ITEMS: usize = 300;
    let queue = Queue::created().await;
    must(
        &mut queue.connect().await,
        &format!("SELECT enqueue_worker_work(n || '', 0) FROM generate_series(1, {ITEMS}) n"),
    )
    .await;

    let mut workers = Vec::new();
    for _ in 0..SESSIONS / 2 {
        let mut session = queue.connect().await;
        workers.push(tokio::spawn(async move {
            let mut done = Vec::new();
            loop {
                let now = now_ms();
                let Some(item) = dispatcher::take(&mut session, now, 1).await.expect("fetch") else {
                    let left = "SELECT EXISTS (SELECT FROM worker_queue)";
                    if sqlx::query_scalar(left).fetch_one(&mut session).await.expect("worker_queue") {
                        continue;
                    }
                    return done;
                };
                // By the clock that it claimed with, the lease may or may not be over.
                let completion = format!("SELECT ack_worker('{}', 'i', '{}', {now})", item.token, item.item);
                match dispatcher::perform(&mut session, &completion).await {
                    Ok(()) => done.push(item.item),
                    Err(error) => assert_eq!(sqlstate(&error), code::RAISE_EXCEPTION, "{error}"),
                }
            }
        }));
    }
    let mut done = Vec::new();
    for worker in workers {
        done.extend(worker.await.expect("a worker ends well"));
    }

    assert_eq!((done.len(), done.iter().collect::<BTreeSet<_>>().len()), (ITEMS, ITEMS));
    let mut session = queue.connect().await;
    let completions = "SELECT count(DISTINCT work_item) * 1000000 + count(*) FROM orchestrator_queue";
    assert_eq!(dispatcher::number(&mut session, completions).await, (ITEMS * 1_000_000 + ITEMS) as i64);
    queue.remove().await;
}
