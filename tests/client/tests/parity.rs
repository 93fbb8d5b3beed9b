//! One script of calls, good and bad, comes to the same on duroxide-pg's own procedures and on ours:
//! rows, errors and tables; what is meant to differ stands in parity/differences.tsv and nowhere else.

#[path = "parity/chance.rs"]
mod chance;
#[path = "parity/contract.rs"]
mod contract;
#[path = "parity/differences.rs"]
mod differences;
#[path = "parity/script.rs"]
mod script;
#[path = "parity/side.rs"]
mod side;

use differences::{Difference, Differences};
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::queue::{Kind, Queue};
use script::Step;
use side::Side;
use std::collections::BTreeSet;

#[tokio::test]
async fn g6_one_script_comes_to_the_same_on_the_reference_and_on_ours() {
    let groups = script::groups();
    let mut reference = Side::on(Kind::Reference).await;
    let mut created = Side::on(Kind::Created).await;
    let mut adopted = Side::on(Kind::Adopted).await;
    let mut differences = Differences::listed();
    let mut calls = 0;

    for group in &groups {
        for side in [&mut reference, &mut created, &mut adopted] {
            side.begin_group().await;
        }
        for step in &group.steps {
            calls += usize::from(matches!(step, Step::Call(_)));
            let theirs = reference.take(step).await;
            let ours = [created.take(step).await, adopted.take(step).await];
            assert_eq!(theirs.len(), ours[0].len());
            for (place, (what, reference)) in theirs.iter().enumerate() {
                let call = format!("{}/{what}", group.name);
                let [created, adopted] = ours.each_ref().map(|ours| ours[place].1.clone());
                if [reference, &created].iter().any(|seen| *seen == side::NOTHING_WRITTEN) {
                    continue; // that the other side was not refused is told by the call itself
                }
                differences.judge(Difference { call, reference: reference.clone(), created, adopted });
            }
        }
        let theirs = reference.tables().await;
        let ours = [created.tables().await, adopted.tables().await];
        for (table, reference) in &theirs {
            let [created, adopted] = ours.each_ref().map(|ours| ours[table].clone());
            differences.judge(side::in_tables(&group.name, table, reference, &created, &adopted));
        }
    }

    println!("{calls} calls in {} groups, {} listed differences", groups.len(), differences.count());
    differences.assert_as_listed();
    for side in [reference, created, adopted] {
        side.remove().await;
    }
}

#[tokio::test]
async fn scripts_made_by_chance_come_to_the_same() {
    const STEPS: usize = 200;
    let seeds = std::env::var("DUROXIDE_QUEUE_TEST_SEEDS").unwrap_or_else(|_| "1 2 3".into());
    let mut sides =
        [Side::on(Kind::Reference).await, Side::on(Kind::Created).await, Side::on(Kind::Adopted).await];
    for seed in seeds.split_whitespace() {
        for side in &mut sides {
            side.begin_group().await;
        }
        let mut chance = chance::Chance::new(seed.parse().expect("a number"));
        let (mut done, mut claims, mut messages, mut work_items) = (Vec::new(), 0, 0, 0);
        for number in 0..STEPS {
            let step = chance.step(number, messages, work_items);
            let mut seen = Vec::new();
            for side in &mut sides {
                let outcome = side.take(&step).await.remove(0).1;
                let tables = side.tables().await;
                seen.push((outcome, tables));
            }
            done.push(format!("{step:?}\n    {}", seen[0].0));
            claims += usize::from(seen[0].0.contains("<o"));
            let (reference, ours) = seen.split_first().expect("three sides");
            (messages, work_items) =
                (reference.1["orchestrator_queue"].len(), reference.1["worker_queue"].len());
            for (outcome, tables) in ours {
                let differing: Vec<_> =
                    reference.1.iter().filter(|(name, rows)| tables[*name] != **rows).collect();
                assert!(
                    reference.0 == *outcome && differing.is_empty(),
                    "seed {seed}, step {number}, after\n{}\nours: {outcome}\ntheirs: {differing:#?}\nours: {tables:#?}",
                    done[done.len().saturating_sub(12)..].join("\n")
                );
            }
        }
        assert!(claims > STEPS / 50, "seed {seed}: only {claims} claims");
    }
    for side in sides {
        side.remove().await;
    }
}

#[test]
fn the_script_covers_every_function_and_every_argument() {
    let groups = script::groups();
    let calls: Vec<_> = groups
        .iter()
        .flat_map(|group| &group.steps)
        .filter_map(|step| match step {
            Step::Call(call) => Some(call),
            Step::Setup(_) => None,
        })
        .collect();
    let mut names = BTreeSet::new();
    for group in &groups {
        for step in &group.steps {
            if let Step::Call(call) = step {
                assert!(names.insert((&group.name, &call.name)), "{}/{} comes twice", group.name, call.name);
            }
        }
    }

    for function in contract::functions() {
        let of_function: Vec<_> = calls.iter().filter(|call| call.calls(function.name)).collect();
        assert!(of_function.len() >= 2, "{} is called {} times", function.name, of_function.len());
        for argument in function.arguments() {
            assert!(
                of_function.iter().any(|call| call.null_argument.as_deref() == Some(argument)),
                "no call passes NULL as {argument} of {}",
                function.name
            );
        }
    }
    assert!(calls.len() >= 300, "{} calls", calls.len());
}

/// Errors that a client meets, each with its SQLSTATE and the start of its message.
const ERRORS: [(&str, &str, &str); 14] = [
    ("ack_orchestration_item('x', 1, 1, '[]', '[]', '[]', '{}')", "P0001", "Invalid lock token"),
    ("renew_orchestration_item_lock('x', 1, 1)", "P0001", "Lock token invalid, expired, or already released"),
    ("abandon_orchestration_item('x', 1)", "P0001", "Invalid lock token"),
    ("ack_worker('x')", "P0001", "Worker queue item not found or already processed"),
    ("renew_work_item_lock('x', 1, 1)", "P0001", "Lock token invalid, expired, or already acked"),
    ("abandon_work_item('x', 1)", "P0001", "Invalid lock token or already acked"),
    ("get_parent_id('x')", "P0001", "Instance not found: x"),
    ("prune_executions('x')", "P0001", "Instance x not found"),
    ("enqueue_orchestrator_work('i', 'not json', now())", "22P02", "p_work_item could never be delivered"),
    ("enqueue_orchestrator_work('i', '\"\\u0000\"', now())", "22P05", "p_work_item could never be delivered"),
    ("enqueue_orchestrator_work(NULL, '{}', now())", "23502", "null value in column \"instance_id\""),
    ("fetch_work_item(1, NULL)", "22004", "p_lock_timeout_ms must not be null"),
    ("append_history('i', 1, '5')", "22023", "cannot get array length"),
    ("enqueue_worker_work('{}', 9223372036854775807)", "22008", "timestamp out of range"),
];

#[tokio::test]
async fn g6_a_session_survives_a_thousand_errors_of_each_kind() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        for (call, code, message) in ERRORS {
            let caught = format!(
                "DO $do$
                 BEGIN
                   FOR n IN 1..1000 LOOP
                     BEGIN
                       PERFORM {call};
                       RAISE EXCEPTION 'no error';
                     EXCEPTION WHEN OTHERS THEN
                       IF SQLSTATE <> '{code}' OR NOT starts_with(SQLERRM, $m${message}$m$) THEN
                         RAISE EXCEPTION '% %', SQLSTATE, SQLERRM;
                       END IF;
                     END;
                   END LOOP;
                 END $do$"
            );
            must(&mut session, &caught).await;

            must(&mut session, "BEGIN; SELECT enqueue_worker_work('{}', 1); SAVEPOINT s").await;
            for _ in 0..20 {
                let error = must_fail(&mut session, &format!("SELECT {call}")).await;
                assert!(error.code == code && error.message.starts_with(message), "{call}: {error}");
                must(&mut session, "ROLLBACK TO s").await;
            }
            must(&mut session, "COMMIT").await;
        }
        let kept = must(&mut session, "SELECT count(*) FROM worker_queue").await;
        assert_eq!(kept, [[Some(ERRORS.len().to_string())]], "what came before an error stays");
        let held = must(
            &mut session,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        )
        .await;
        assert_eq!(held, [[Some("0".into())]]);
        queue.remove().await;
    }
}
