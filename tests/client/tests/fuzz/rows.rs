//! Rows that no function of ours has written: what constraints allow, and no more sense than that.

use crate::random::Random;
use crate::target::{QUEUES, Target};
use crate::values::{TIMES, quoted};

/// A lease that outlasts a round.
const LEASE_MS: i64 = 600_000;
/// The instance that must be served whatever else is in the tables.
const HEALTHY: &str = "healthy";
const HEALTHY_ITEM: &str = r#"{"ActivityExecute":{"instance":"healthy"}}"#;

/// Versions that a dispatcher may ask for; the healthy instance has none, and any will do.
const VERSIONS: [&str; 3] = ["", ", 0, 9223372036854775807", ", 0, NULL"];

const ATTEMPTS: &[&str] = &["0", "1", "-1", "2147483646", "2147483647", "(-2147483648)"];
const SIZES: &[&str] = &["0", "1", "-1", "1000", "32767", "2147483647", "(-2147483648)"];
const MOMENTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "(extract(epoch FROM now()) * 1000)::bigint",
    "(extract(epoch FROM now()) * 1000)::bigint + 60000",
    "9223372036854775807",
    "(-9223372036854775808)",
];

/// Puts rows into a queue whose fetches must then still serve the instance and the item that are sound.
pub async fn stop_nobody(target: &mut Target, round: u64) {
    let (_, queue) = target.values.random.pick(&QUEUES);
    target.empty().await;
    let inserted = insert(target, queue, 12).await;
    let sql = format!(
        "SELECT {queue}.enqueue_orchestrator_work('{HEALTHY}', '{{\"StartOrchestration\":{{}}}}', now() - interval '1 s'), \
                {queue}.enqueue_worker_work('{HEALTHY_ITEM}', (extract(epoch FROM now()) * 1000)::bigint - 1000)"
    );
    target.expect(&sql, &inserted).await;

    let versions = target.values.random.pick(&VERSIONS);
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let fetch = format!(
        "SELECT out_instance_id, out_lock_token FROM {queue}.fetch_orchestration_item({now}, {LEASE_MS}{versions})"
    );
    // Each fetch takes something else out of the way, or there is nothing left.
    let mut token = None;
    for _ in 0..=inserted.len() {
        match target.expect(&fetch, &inserted).await.as_deref() {
            Some([instance, held]) if instance.as_deref() == Some(HEALTHY) => {
                token.clone_from(held);
                break;
            }
            Some(_) => {}
            None => break,
        }
    }
    let Some(token) = token else {
        target.fault(&inserted.join(";\n"), &format!("round {round}: the sound instance is not served"));
        return;
    };
    let ack = format!(
        "SELECT {queue}.ack_orchestration_item('{token}', {now}, 1, '[]', '[]', '[]', \
                                               '{{\"orchestration_name\":\"O\",\"orchestration_version\":\"1\"}}')"
    );
    target.expect(&ack, &inserted).await;

    let fetch = format!(
        "SELECT out_work_item FROM {queue}.fetch_work_item({now}, {LEASE_MS}, 'sound worker', 1000, NULL, 'any')"
    );
    for _ in 0..=inserted.len() {
        match target.expect(&fetch, &inserted).await.as_deref() {
            Some([item]) if item.as_deref() == Some(HEALTHY_ITEM) => return,
            Some(_) => {}
            None => break,
        }
    }
    target.fault(&inserted.join(";\n"), &format!("round {round}: the sound work item is not served"));
}

/// Inserts up to so many rows; returns the statements that the server took.
pub async fn insert(target: &mut Target, queue: &str, count: usize) -> Vec<String> {
    let mut inserted = Vec::new();
    let instances: Vec<String> = (0..3).map(|_| target.values.text()).collect();
    for _ in 0..count {
        let instance = target.values.random.pick(&instances);
        let sql = row(target, queue, &instance);
        let result = sqlx::raw_sql(&sql).execute(&mut target.session).await;
        match result {
            Ok(_) => inserted.push(sql),
            // Too long for an index, not of this encoding, there already.
            Err(sqlx::Error::Database(_)) => {}
            Err(error) => panic!("{sql}: {error}"),
        }
    }
    inserted
}

fn row(target: &mut Target, queue: &str, instance: &str) -> String {
    let text = target.values.text();
    let other = target.values.text();
    let json = if target.values.random.percent(50) {
        quoted(&format!("{{\"ExternalRaised\":{{\"instance\":{}}}}}", target.values.random.below(9)))
    } else {
        target.values.text()
    };
    let random = &mut target.values.random;
    let time = past(random);
    let lease = |random: &mut Random| {
        let token = random.pick(&["NULL", "NULL", "'t'", "''", "md5(random()::text)"]);
        let until = random.pick(&["NULL", "0", "-1", "9223372036854775807", "(-9223372036854775808)"]);
        format!("{token}, {until}")
    };
    let (attempts, size, id) = (random.pick(ATTEMPTS), random.pick(SIZES), random.pick(MOMENTS));
    let (moment, now) = (random.pick(MOMENTS), "now()");
    match random.below(12) {
        0..4 => format!(
            "INSERT INTO {queue}.orchestrator_queue \
             (instance_id, work_item, visible_at, created_at, attempt_count, lock_token, locked_until) \
             VALUES ({instance}, {json}, {time}, {now}, {attempts}, {})",
            lease(random)
        ),
        4..6 => format!(
            "INSERT INTO {queue}.worker_queue \
             (work_item, visible_at, created_at, attempt_count, lock_token, locked_until, \
              instance_id, execution_id, activity_id, session_id, tag) \
             VALUES ({text}, {time}, {now}, {attempts}, {}, {instance}, {id}, {moment}, {}, {})",
            lease(random),
            if random.percent(50) { "'s1'" } else { "NULL" },
            if random.percent(20) { &other } else { "NULL" },
        ),
        6 => format!(
            "INSERT INTO {queue}.instance_locks VALUES ({instance}, md5(random()::text), {moment}, {id})"
        ),
        7 => format!(
            "INSERT INTO {queue}.instances (instance_id, orchestration_name, orchestration_version, \
                current_execution_id, created_at, updated_at, custom_status_version) \
             VALUES ({instance}, {text}, {}, {id}, {time}, {time}, {size})",
            if random.percent(50) { &other } else { "NULL" },
        ),
        8 => format!(
            "INSERT INTO {queue}.executions VALUES ({instance}, {id}, {text}, {other}, {time}, {time}, {size}, \
                {}, {})",
            random.pick(SIZES),
            random.pick(SIZES)
        ),
        9 => format!(
            "INSERT INTO {queue}.history VALUES ({instance}, {}, {moment}, {other}, {json}, {time})",
            random.pick(&["1", id])
        ),
        10 => format!("INSERT INTO {queue}.kv_store VALUES ({instance}, {text}, {other}, {id}, {moment})"),
        _ => format!("INSERT INTO {queue}.sessions VALUES ('s1', {text}, {moment}, {id})"),
    }
}

/// A time, rather one at which the row is due before the sound one.
fn past(random: &mut Random) -> &'static str {
    if random.percent(60) {
        random.pick(&["now() - interval '1 h'", "'-infinity'::timestamptz", "'0001-01-01 BC'::timestamptz"])
    } else {
        random.pick(TIMES)
    }
}
