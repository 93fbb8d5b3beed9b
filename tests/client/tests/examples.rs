//! Each worker in examples/ does what its README says: against the server, behind pgbouncer, beside the others, and
//! beside duroxide, whose client reads what they wrote and whose runtime goes on where they stopped.

#[path = "examples/greetings.rs"]
mod greetings;
#[path = "examples/pooling.rs"]
mod pooling;
#[path = "examples/worker.rs"]
mod worker;

use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server;
use greetings::{assert_greeted, assert_nothing_is_left, client_of, completed, start, wait_for};
use std::process::Command;
use worker::{Language, Pace, Worker, attempts};

macro_rules! in_each_language {
    ($($module:ident $language:ident)*) => {$(
        mod $module {
            use crate::worker::Language;

            #[tokio::test]
            async fn does_what_is_enqueued_and_stops() {
                crate::does_what_is_enqueued_and_stops(Language::$language).await;
            }

            #[tokio::test]
            async fn keeps_a_lease_survives_a_lost_one_and_gives_back() {
                crate::keeps_a_lease_survives_a_lost_one_and_gives_back(Language::$language).await;
            }
        }
    )*};
}

in_each_language! { python Python javascript JavaScript go Go java Java rust Rust }

async fn does_what_is_enqueued_and_stops(language: Language) {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let instances = ["first", "o'brien/2", "3\"\\"];
    start(&mut session, "another's", "Other").await;
    for instance in instances {
        start(&mut session, instance, "Greet").await;
    }
    start(&mut session, "first", "Greet").await; // says nothing new

    let worker = Worker::start(language, &server::url(), queue.schema(), Pace::BRISK).await;
    completed(&mut session, 3).await;
    let said = worker.stop().await;

    let provider = client_of(&queue).await;
    for instance in instances {
        assert_greeted(&queue, &provider, instance).await;
        assert_eq!(attempts(&said, instance), [1], "{said:#?}");
    }
    provider.pool().close().await;
    // What it cannot run is still there for somebody who can, and free.
    let message =
        "DELETE FROM orchestrator_queue WHERE instance_id = 'another''s' AND lock_token IS NULL RETURNING id";
    assert_eq!(must(&mut session, message).await.len(), 1, "{said:#?}");
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}

async fn keeps_a_lease_survives_a_lost_one_and_gives_back(language: Language) {
    const LEASED: &str =
        "SELECT locked_until FROM worker_queue WHERE instance_id = 'lost' AND attempt_count = 1";
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let worker = Worker::start(language, &server::url(), queue.schema(), Pace::endless(6)).await;

    // The heartbeat: the lease moves on, and moves on again, while the activity is at work.
    start(&mut session, "lost", "Greet").await;
    worker.says("lost: greet, attempt 1").await;
    for _ in 0..2 {
        let until = must(&mut session, LEASED).await.remove(0).remove(0).expect("it is leased");
        wait_for(&mut session, &format!("SELECT ({LEASED}) > {until}")).await;
    }

    // Somebody else has it: the next heartbeat says so, and the worker goes on with something else.
    let taken = "UPDATE worker_queue SET lock_token = 'somebody else''s', locked_until = 9999999999999";
    must(&mut session, taken).await;
    worker.says("lost a claim").await;
    start(&mut session, "next", "Greet").await;
    worker.says("next: greet, attempt 1").await;

    // Asked to stop, it gives back what it has begun, as if it had never begun.
    let said = worker.stop().await;
    assert!(said.iter().any(|line| line == "next: given back"), "{said:#?}");
    let free = must(
        &mut session,
        "SELECT instance_id FROM worker_queue WHERE lock_token IS NULL AND locked_until IS NULL AND attempt_count = 0",
    )
    .await;
    assert_eq!(free, [[Some("next".to_owned())]], "{said:#?}");

    // duroxide replays what the worker has written, and goes on from there.
    must(&mut session, "UPDATE worker_queue SET lock_token = NULL, locked_until = NULL").await;
    let provider = client_of(&queue).await;
    let runtime = greetings::duroxide(provider.clone()).await;
    completed(&mut session, 2).await;
    runtime.shutdown(None).await;
    assert_greeted(&queue, &provider, "lost").await;
    assert_greeted(&queue, &provider, "next").await;
    provider.pool().close().await;
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}

#[tokio::test]
async fn whoever_comes_takes_over_from_a_worker_that_was_killed() {
    const LEASE_SECONDS: u32 = 6;
    const LEASE: &str = "SELECT locked_until, attempt_count FROM worker_queue";
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let (schema, url) = (queue.schema(), server::url());
    start(&mut session, "heirloom", "Greet").await;

    let mut ended = 0;
    for (killed, language) in Language::ALL[..4].iter().enumerate() {
        let worker = Worker::start(*language, &url, schema, Pace::endless(LEASE_SECONDS)).await;
        worker.says(&format!("heirloom: greet, attempt {}", killed + 1)).await;
        let begun = lease(must(&mut session, LEASE).await) - i64::from(LEASE_SECONDS) * 1000;
        assert!(
            begun >= ended,
            "{language:?} began at {begun}, before the lease of the dead ended at {ended}"
        );
        worker.kill().await;
        ended = lease(must(&mut session, LEASE).await);
    }
    let last = Worker::start(Language::ALL[4], &url, schema, Pace::BRISK).await;
    completed(&mut session, 1).await;
    let said = last.stop().await;

    assert_eq!(attempts(&said, "heirloom"), [5], "{said:#?}");
    let provider = client_of(&queue).await;
    assert_greeted(&queue, &provider, "heirloom").await;
    provider.pool().close().await;
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}

/// When the only lease ends.
fn lease(rows: Vec<Vec<Option<String>>>) -> i64 {
    rows[0][0].as_deref().expect("it is leased").parse().expect("a time")
}

#[tokio::test]
async fn five_languages_share_a_queue_and_nothing_is_done_twice() {
    share(&server::url(), &Language::ALL).await;
}

#[tokio::test]
async fn five_languages_share_a_queue_behind_pgbouncer() {
    pooling::all_languages_through_a_pooler().await;
}

/// Case G1, a pooler gives each call another session.
#[tokio::test]
async fn g1_a_worker_behind_pgbouncer() {
    pooling::each_call_meets_another_backend().await;
}

/// Workers on one queue, reached by `url`, until each has done its share.
async fn share(url: &str, languages: &[Language]) {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut workers = Vec::new();
    for &language in languages {
        workers.push(Worker::start(language, url, queue.schema(), Pace::BRISK).await);
    }
    let mut instances: Vec<String> = Vec::new();
    // A driver that prepares statements by itself begins with the fifth or sixth run.
    let has_worked =
        |worker: &Worker| worker.said().iter().filter(|line| line.contains("greet, attempt")).count() >= 8;
    while !workers.iter().all(has_worked) {
        assert!(instances.len() < 2_000, "one is left out: {workers:#?}");
        for _ in 0..20 {
            instances.push(format!("i{}", instances.len()));
            start(&mut session, instances.last().expect("one"), "Greet").await;
        }
        completed(&mut session, instances.len()).await;
    }

    let mut said = Vec::new();
    for worker in workers {
        let language = worker.language();
        let lines = worker.stop().await;
        assert!(!lines.iter().any(|line| line.contains("lost")), "{language:?}: {lines:#?}");
        said.extend(lines);
    }
    let provider = client_of(&queue).await;
    for instance in &instances {
        assert_eq!(attempts(&said, instance), [1], "{instance}");
        assert_greeted(&queue, &provider, instance).await;
    }
    provider.pool().close().await;
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}

/// duroxide's runtime and a worker, until each has done the activity of an instance that the other had begun.
#[tokio::test]
async fn duroxide_and_a_worker_share_a_queue() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let provider = client_of(&queue).await;
    let worker = Worker::start(Language::Python, &server::url(), queue.schema(), Pace::BRISK).await;
    let runtime = greetings::duroxide(provider.clone()).await;
    let mut instances: Vec<String> = Vec::new();
    loop {
        assert!(instances.len() < 2_000, "one is left out: {worker:#?}");
        for _ in 0..20 {
            instances.push(format!("i{}", instances.len()));
            start(&mut session, instances.last().expect("one"), "Greet").await;
        }
        completed(&mut session, instances.len()).await;
        let said = worker.said();
        let has_begun =
            |i: &String| said.iter().any(|line| line.starts_with(&format!("{i}: OrchestrationStarted")));
        let has_greeted = |i: &String| !attempts(&said, i).is_empty();
        if instances.iter().any(|i| has_begun(i) && !has_greeted(i))
            && instances.iter().any(|i| has_greeted(i) && !has_begun(i))
        {
            break;
        }
    }
    worker.stop().await;
    runtime.shutdown(None).await;

    for instance in &instances {
        assert_greeted(&queue, &provider, instance).await;
    }
    provider.pool().close().await;
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}

#[tokio::test]
async fn the_readme_shows_what_happens() {
    let readme = std::fs::read_to_string(worker::examples().join("README.md")).expect("the README");
    let block = |language: &str| {
        let (_, rest) = readme.split_once(&format!("```{language}\n")).expect("a block");
        rest.split_once("```").expect("its end").0.to_owned()
    };
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, &block("sql")).await;

    let url = server::url();
    let (server, _) = url.rsplit_once('/').expect("the URL names a database");
    let url = format!("{server}/{}", database.name());
    let worker = Worker::start(Language::Python, &url, "app", Pace::BRISK).await;
    worker.says("OrchestrationCompleted").await;
    let said = worker.stop().await;

    assert_eq!(said.join("\n"), block("text") + "stopped");
    let info = must(&mut session, "SELECT status, output FROM app.get_instance_info('hello-1')").await;
    assert_eq!(info, [[Some("Completed".to_owned()), Some("Hello, World!".to_owned())]]);
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn psql_does_a_round_at_a_time() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    // The server's own psql: another's may be too old for it.
    let bindir =
        must(&mut session, "SELECT setting FROM pg_config WHERE name = 'BINDIR'").await.remove(0).remove(0);
    let psql = std::path::Path::new(&bindir.expect("a folder")).join("psql");
    let round = || {
        let output = Command::new(&psql)
            .arg(server::url())
            .args(["-X", "-v", &format!("queue={}", queue.schema()), "-f"])
            .arg(worker::examples().join("psql/worker.sql"))
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", psql.display()));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    start(&mut session, "o'brien", "Greet").await;
    start(&mut session, "o'brien", "Greet").await;

    assert_eq!(round(), ["o'brien: OrchestrationStarted and ActivityScheduled", "o'brien: greet, attempt 1"]);
    assert_eq!(round(), ["o'brien: ActivityCompleted and OrchestrationCompleted", "no activity to run"]);
    assert_eq!(round(), ["no turn to take", "no activity to run"]);

    let provider = client_of(&queue).await;
    assert_greeted(&queue, &provider, "o'brien").await;
    provider.pool().close().await;
    assert_nothing_is_left(&mut session).await;
    queue.remove().await;
}
