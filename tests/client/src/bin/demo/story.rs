//! The story that the demo tells, step by step.

use crate::checks::Checks;
use crate::runtime::Runtime;
use crate::stage::{Stage, seconds};
use crate::terminal::{heading, say, table};
use crate::watch::Watch;
use crate::worker::{LEASE, READY, runs};
use crate::{Failure, ORDER, QUEUE};
use duroxide::{Client, Event, EventKind, OrchestrationStatus};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::server::{self, now_ms};
use duroxide_queue_tests::{queue, workflow};
use sqlx::Row;
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::Duration;

/// How long the activity has run when its runtime is killed: well before it ends.
const INTO_THE_WORK: Duration = Duration::from_millis(700);

/// Tells it. True if everything came out right.
pub async fn tell() -> Result<bool, Failure> {
    server::quiet_logs();
    let mut session = server::connect(None).await;

    heading(1, "A queue, in two statements");
    set_up(&mut session).await?;
    let mut stage = Stage::new(Watch::begin(server::connect(None).await).await?);
    let provider = queue::open(&server::url(), QUEUE, MigrationPolicy::VerifyOnly).await;
    let client = Client::new(Arc::new(provider));

    heading(2, "A workflow starts on it");
    say("An order of 3 books: reserve them, charge the card, wait a second, wait for an approval,");
    say("ship (a workflow of its own), go on as a new execution, send the receipt.");
    say(&format!(
        "A claim gives a lock token and a lease of {LEASE:?}; an ack ends it. Seen by triggers that"
    ));
    say("the demo puts on the tables: the time in seconds, who (A or B), and what it did.");
    let first = start(&mut stage, "A").await?;
    client.start_orchestration(ORDER, workflow::ORCHESTRATION, workflow::INPUT).await?;
    let charging = runs(workflow::CHARGE);
    stage
        .until("runtime A charges the card", async |stage: &Stage| {
            Ok(stage.said.iter().any(|line| line.text == charging))
        })
        .await?;
    stage.wait(INTO_THE_WORK).await?;

    heading(3, "The runtime is killed in the middle of an activity");
    let lease_ends_ms = kill(&mut session, first).await?;

    heading(4, "Another runtime takes over");
    let second = start(&mut stage, "B").await?;
    say(&format!(
        "The lease of A has {} s to go. Until then B asks in vain.",
        seconds(lease_ends_ms - now_ms())
    ));
    stage
        .until("the order waits for its approval", async |_: &Stage| {
            Ok(workflow::waits_for_approval(&client, ORDER).await?)
        })
        .await?;

    heading(5, "Somebody approves: an external event");
    say(&format!(
        "The order waits for the event {:?}. {} raises it.",
        workflow::APPROVAL,
        workflow::APPROVER
    ));
    client.raise_event(ORDER, workflow::APPROVAL, workflow::APPROVER).await?;
    let status = finish(&mut stage, &client).await?;
    let exit = second.stop().await?;

    heading(6, "What came out");
    let mut checks = Checks::default();
    let output = match status {
        OrchestrationStatus::Completed { output, .. } => output,
        other => format!("{other:?}"),
    };
    say(&format!("result    {output}"));
    say(&format!("expected  {}", workflow::RESULT));
    println!();
    checks.check(output == workflow::RESULT, "the result is the right one");
    checks.leases(&stage);
    checks.history(&client.read_execution_history(ORDER, 1).await?);
    checks.queue(&mut session).await?;
    checks.check(exit.success(), "runtime B stopped when it was asked to");

    heading(7, "What the queue knows");
    for instance in [ORDER.to_owned(), workflow::shipping_of(ORDER)] {
        show_history(&client, &instance).await?;
    }
    say("SELECT * FROM duroxide_queue.queues");
    show_queues(&mut session).await?;

    if !checks.all_right() {
        println!("\nThe demo FAILED: see what is marked WRONG above. The queue is left as it is.");
        return Ok(false);
    }
    stage.clear().await?;
    sqlx::query("SELECT duroxide_queue.drop_queue($1)").bind(QUEUE).execute(&mut session).await?;

    println!("\nThe demo passed: the order is complete, although its runtime was killed.");
    Ok(true)
}

/// The extension and the queue, and proof of whose functions make the claims.
async fn set_up(session: &mut PgConnection) -> Result<(), Failure> {
    let version: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut *session).await?;
    say(&format!("PostgreSQL {version}"));
    server::create_extension(session).await?;
    say("CREATE EXTENSION duroxide_queue;");
    sqlx::query("SELECT duroxide_queue.create_queue($1)").bind(QUEUE).execute(&mut *session).await?;
    say("SELECT duroxide_queue.create_queue('demo');");
    let (library, symbol): (String, String) = sqlx::query_as(
        "SELECT probin::text, prosrc FROM pg_proc \
         WHERE pronamespace = 'demo'::regnamespace AND proname = 'fetch_orchestration_item'",
    )
    .fetch_one(session)
    .await?;
    say(&format!("Every claim is made by {symbol} in {library}, called by the unmodified duroxide-pg."));
    Ok(())
}

/// Starts a runtime and waits until it looks for work.
async fn start(stage: &mut Stage, name: &'static str) -> Result<Runtime, Failure> {
    let runtime = Runtime::start(name, stage.speaker())?;
    say(&format!("Runtime {name} is process {}.", runtime.pid));
    stage
        .until("the runtime is ready", async |stage: &Stage| {
            let mut said = stage.said.iter();
            Ok(said.any(|line| line.runtime == name && line.text == READY))
        })
        .await?;
    Ok(runtime)
}

/// Kills it, and shows that its lease outlives it. Returns when the lease ends.
async fn kill(session: &mut PgConnection, runtime: Runtime) -> Result<i64, Failure> {
    let (name, pid) = (runtime.name, runtime.pid);
    let status = runtime.kill().await?;
    say(&format!("Process {pid} (runtime {name}) is gone: {status}."));

    let (token, lease_ends_ms, attempt): (String, i64, i32) = sqlx::query_as(
        "SELECT lock_token, locked_until, attempt_count FROM demo.worker_queue \
         WHERE lock_token IS NOT NULL",
    )
    .fetch_optional(session)
    .await?
    .ok_or("the runtime was killed while it held nothing")?;
    let left_ms = lease_ends_ms - now_ms();
    if left_ms <= 0 {
        return Err("the lease had run out when the runtime was killed".into());
    }
    say("What it held is still in demo.worker_queue:");
    table(
        &["activity", "attempt", "lock_token", "ends in"],
        &[vec![workflow::CHARGE.to_owned(), attempt.to_string(), token, format!("{} s", seconds(left_ms))]],
    );
    Ok(lease_ends_ms)
}

/// Shows what happens until the order ends.
async fn finish(stage: &mut Stage, client: &Client) -> Result<OrchestrationStatus, Failure> {
    let mut last = OrchestrationStatus::NotFound;
    stage
        .until("the order ends", async |_: &Stage| {
            last = client.get_orchestration_status(ORDER).await?;
            Ok(!matches!(last, OrchestrationStatus::Running { .. }))
        })
        .await?;
    Ok(last)
}

async fn show_history(client: &Client, instance: &str) -> Result<(), Failure> {
    for execution in client.list_executions(instance).await? {
        say(&format!("history of {instance}, execution {execution}"));
        for event in client.read_execution_history(instance, execution).await? {
            say(&format!("  {:>2}  {}", event.event_id(), describe(&event)));
        }
    }
    println!();
    Ok(())
}

/// An event in a few words. The demo's workflow has no others than these.
fn describe(event: &Event) -> String {
    match &event.kind {
        EventKind::OrchestrationStarted { name, input, .. } => format!("started: {name}({input})"),
        EventKind::OrchestrationCompleted { output } => format!("completed: {output}"),
        EventKind::OrchestrationContinuedAsNew { input } => format!("continued as new: {input}"),
        EventKind::ActivityScheduled { name, input, .. } => format!("activity {name}({input})"),
        EventKind::ActivityCompleted { result } => format!("activity done: {result}"),
        EventKind::TimerCreated { .. } => "timer set".to_owned(),
        EventKind::TimerFired { .. } => "timer fired".to_owned(),
        EventKind::ExternalSubscribed { name } => format!("waits for event {name}"),
        EventKind::ExternalEvent { name, data } => format!("event {name}: {data}"),
        EventKind::SubOrchestrationScheduled { name, instance, .. } => {
            format!("sub-orchestration {name} as {instance}")
        }
        EventKind::SubOrchestrationCompleted { result } => {
            format!("sub-orchestration done: {result}")
        }
        other => format!("{other:?}"),
    }
}

async fn show_queues(session: &mut PgConnection) -> Result<(), Failure> {
    const COLUMNS: [&str; 6] = ["queue", "owner", "origin", "layout", "own_functions", "intact"];
    let select: Vec<String> = COLUMNS.iter().map(|name| format!("{name}::text")).collect();
    let rows =
        sqlx::query(&format!("SELECT {} FROM duroxide_queue.queues ORDER BY queue", select.join(", ")))
            .fetch_all(session)
            .await?;
    let rows: Result<Vec<Vec<String>>, sqlx::Error> =
        rows.iter().map(|row| (0..COLUMNS.len()).map(|column| row.try_get(column)).collect()).collect();
    table(&COLUMNS, &rows?);
    Ok(())
}
