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
    views_show_all(target, queue, &inserted).await;

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

/// The views leave out what they cannot read, so it is counted whether they show every row: with no limit
/// to age and attempts, each instance and each work item is stuck.
async fn views_show_all(target: &mut Target, queue: &str, inserted: &[String]) {
    let least = i32::MIN;
    let sql = format!(
        "SELECT concat_ws(' ', h.problems, h.counted = m.messages + m.items, l.count = m.leases, \
                          s.instances = m.instances, s.items = m.items) \
         FROM (SELECT string_agg(h.problem, ' ') AS problems, \
                      sum(h.ready + h.waiting + h.scheduled + h.leased + h.expired) AS counted \
               FROM duroxide_queue.queue_health h WHERE quote_ident(h.queue) = $q${queue}$q$) h, \
              (SELECT count(*) FROM duroxide_queue.leases WHERE quote_ident(queue) = $q${queue}$q$) l, \
              (SELECT count(*) FILTER (WHERE kind = 'orchestration') AS instances, \
                      count(*) FILTER (WHERE kind = 'work item') AS items \
               FROM duroxide_queue.stuck('0', {least}) WHERE quote_ident(queue) = $q${queue}$q$) s, \
              (SELECT (SELECT count(*) FROM {queue}.orchestrator_queue) AS messages, \
                      (SELECT count(DISTINCT instance_id) FROM {queue}.orchestrator_queue) AS instances, \
                      (SELECT count(*) FROM {queue}.worker_queue) AS items, \
                      (SELECT count(*) FROM {queue}.instance_locks) \
                      + (SELECT count(*) FROM {queue}.worker_queue WHERE lock_token IS NOT NULL) AS leases) m"
    );
    if let Some(shown) = target.expect(&sql, inserted).await
        && shown != [Some("t t t t".to_owned())]
    {
        target.fault(&inserted.join(";\n"), &format!("not all is shown: {shown:?}"));
    }
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
