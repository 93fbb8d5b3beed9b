//! What `contrib/` holds works as it stands: the real exporters give the metrics, and the dashboard and the
//! alerts use no others.

use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::server;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib");
const PATIENCE: Duration = Duration::from_secs(60);

/// Every metric with its labels: what is exported, no more and no less.
const METRICS: [(&str, &str); 23] = [
    ("duroxide_queue_dead_letters", "kind queue"),
    ("duroxide_queue_enqueued_total", "kind queue"),
    ("duroxide_queue_expired", "kind queue"),
    ("duroxide_queue_highest_attempt", "kind queue"),
    ("duroxide_queue_horizon_age_seconds", "holder"),
    ("duroxide_queue_horizon_oldest_xmin_age", "holder"),
    ("duroxide_queue_leased", "kind queue"),
    ("duroxide_queue_leases_longest_held_seconds", "kind queue"),
    ("duroxide_queue_leases_longest_left_seconds", "kind queue"),
    ("duroxide_queue_leases_over", "kind queue"),
    ("duroxide_queue_oldest_claimable_age_seconds", "kind queue"),
    ("duroxide_queue_ready", "kind queue"),
    ("duroxide_queue_removed_total", "kind queue"),
    ("duroxide_queue_scheduled", "kind queue"),
    ("duroxide_queue_stuck_items", "kind queue reason"),
    ("duroxide_queue_stuck_oldest_age_seconds", "kind queue reason"),
    ("duroxide_queue_table_autovacuum_total", "queue table_name"),
    ("duroxide_queue_table_bytes", "queue table_name"),
    ("duroxide_queue_table_dead_rows", "queue table_name"),
    ("duroxide_queue_table_index_bytes", "queue table_name"),
    ("duroxide_queue_table_live_rows", "queue table_name"),
    ("duroxide_queue_unreadable_kinds", "queue"),
    ("duroxide_queue_waiting", "kind queue"),
];

/// What the exporters add by themselves.
const OWN_LABELS: [&str; 7] = ["server", "col", "database", "driver", "host", "sql_job", "user"];

/// One sample: name, labels, value.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

#[tokio::test]
async fn the_exporters_give_the_same_metrics_with_the_rights_of_pg_monitor() {
    let mut database = Database::make().await;
    let role = database.role("exporter").await;
    let mut session = database.connect().await;
    must(
        &mut session,
        &format!(
            "GRANT pg_monitor TO {role}; CREATE EXTENSION duroxide_queue;
             SELECT duroxide_queue.create_queue('shop'), duroxide_queue.create_queue('broken');
             DROP TABLE broken.history;
             SELECT shop.enqueue_orchestrator_work(i, '{{}}', now() - interval '1 hour') FROM unnest(ARRAY['a', 'b', 'c']) i;
             SELECT shop.enqueue_orchestrator_work('d', '{{}}', now() + interval '1 hour');
             SELECT shop.enqueue_worker_work('{{}}', 1, p_tag => 'gpu'), shop.enqueue_worker_work('{{}}', 2);
             SELECT shop.fetch_orchestration_item((extract(epoch FROM clock_timestamp()) * 1000)::bigint, 600000);
             SELECT shop.fetch_work_item(1000, 1000)"
        ),
    )
    .await;
    let mut holder = database.connect().await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;

    let url = format!("{}?sslmode=disable", database.url_as(&role).split('?').next().expect("a URL"));
    let from_postgres_exporter = Exporter::postgres(&url).metrics().await;
    let from_sql_exporter = Exporter::sql(&url).metrics().await;

    let expected: BTreeSet<_> =
        METRICS.iter().map(|(name, labels)| ((*name).to_owned(), (*labels).to_owned())).collect();
    for (exporter, samples) in
        [("postgres_exporter", &from_postgres_exporter), ("sql_exporter", &from_sql_exporter)]
    {
        let found: BTreeSet<_> = samples
            .keys()
            .map(|(name, labels)| {
                (name.clone(), labels.keys().map(String::as_str).collect::<Vec<_>>().join(" "))
            })
            .collect();
        let differences: Vec<_> = expected.symmetric_difference(&found).collect();
        assert!(differences.is_empty(), "{exporter}: {differences:#?}");
        for (name, labels, value) in [
            ("duroxide_queue_ready", "kind=orchestration queue=shop", 2.0),
            ("duroxide_queue_scheduled", "kind=orchestration queue=shop", 1.0),
            ("duroxide_queue_leased", "kind=orchestration queue=shop", 1.0),
            ("duroxide_queue_ready", "kind=work item queue=shop", 1.0),
            ("duroxide_queue_expired", "kind=work item queue=shop", 1.0),
            ("duroxide_queue_leases_over", "kind=work item queue=shop", 1.0),
            ("duroxide_queue_highest_attempt", "kind=work item queue=shop", 1.0),
            ("duroxide_queue_stuck_items", "kind=orchestration queue=shop reason=unclaimed", 2.0),
            ("duroxide_queue_stuck_items", "kind=work item queue=shop reason=tag", 1.0),
            ("duroxide_queue_unreadable_kinds", "queue=broken", 2.0),
            ("duroxide_queue_unreadable_kinds", "queue=shop", 0.0),
        ] {
            let found = samples.iter().find(|((found, sample), _)| found == name && shown(sample) == labels);
            assert_eq!(found.map(|(_, value)| *value), Some(value), "{exporter}: {name}{{{labels}}}");
        }
        let age = |kind: &str| {
            samples
                .iter()
                .find(|((name, labels), _)| {
                    name == "duroxide_queue_oldest_claimable_age_seconds" && labels["kind"] == kind
                })
                .map(|(_, age)| *age)
                .expect("an age")
        };
        assert!((3600.0..7200.0).contains(&age("orchestration")), "{exporter}: in seconds");
    }
    drop((session, holder));
    database.remove().await;
}

fn shown(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn dashboard_and_alerts_use_metrics_and_labels_that_there_are() {
    let known: BTreeMap<&str, &str> = METRICS.into_iter().collect();
    let dashboard = read("grafana/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut expressions = Vec::new();
    let mut ids = BTreeSet::new();
    let mut places = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_i64()), "{title} has the id of another panel");
        let place = |name: &str| panel["gridPos"][name].as_i64().expect("a place");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(x < 24 && places.insert((x, y)), "{title} lies over another panel, or outside");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"].as_str().is_some_and(|text| text.len() > 20),
            "{title} says what it shows"
        );
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let legend = target["legendFormat"].as_str().expect("a legend");
            for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
                let has_it = metrics(expression)
                    .iter()
                    .all(|name| known[name.as_str()].split(' ').any(|l| l == label));
                assert!(has_it, "{title}: no label {label} in {expression}");
            }
            expressions.push(expression.to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        expressions.extend(variable["definition"].as_str().map(str::to_owned));
    }
    let alerts = read("prometheus/alerts.yml");
    expressions
        .extend(alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned));

    let mut used = BTreeSet::new();
    for expression in &expressions {
        let names = metrics(expression);
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            assert!(known.contains_key(name.as_str()), "no exporter gives {name}: {expression}");
            used.insert(name);
        }
    }
    let unused: Vec<_> = known.keys().filter(|name| !used.contains(**name)).collect();
    assert!(unused.is_empty(), "exported and not shown anywhere: {unused:?}");

    // Every alert is among those that alerts_test.yml tries, and all that the dashboard asks is PromQL.
    let tried = read("prometheus/alerts_test.yml");
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tried.matches(alert).count() >= 2, "{alert} is not tried");
    }
    let rules = expressions
        .iter()
        .filter(|expression| !expression.starts_with("label_values"))
        .enumerate()
        .fold(String::from("groups:\n- name: dashboard\n  rules:\n"), |rules, (number, expression)| {
            let expression = expression.replace("$__rate_interval", "5m").replace('\'', "''");
            format!("{rules}  - record: panel:{number}\n    expr: '{expression}'\n")
        });
    let file = std::env::temp_dir().join(format!("panels_{}_{}.yml", server::now_ms(), std::process::id()));
    std::fs::write(&file, rules).expect("a new file");
    promtool(&["check", "rules", file.to_str().expect("a path")]);
    std::fs::remove_file(file).expect("our own file");
}

#[test]
fn each_alert_fires_when_it_should_and_only_then() {
    promtool(&["check", "config", "scrape.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
}

/// Names of metrics in an expression.
fn metrics(expression: &str) -> Vec<String> {
    expression
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("duroxide_queue"))
        .map(str::to_owned)
        .collect()
}

fn read(path: &str) -> String {
    let path = Path::new(CONTRIB).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("DUROXIDE_QUEUE_TEST_PROMETHEUS")
        .expect("DUROXIDE_QUEUE_TEST_PROMETHEUS is not set; `make test` sets it");
    Path::new(&folder).join(name)
}

/// Runs promtool beside the rules.
fn promtool(arguments: &[&str]) {
    let Output { status, stdout, stderr } = Command::new(program("promtool"))
        .args(arguments)
        .current_dir(Path::new(CONTRIB).join("prometheus"))
        .output()
        .unwrap_or_else(|error| panic!("promtool: {error}"));
    let output = [stdout, stderr].concat();
    assert!(status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&output));
}

/// A running exporter, on a port of its own.
struct Exporter {
    process: tokio::process::Child,
    port: u16,
    config: Option<PathBuf>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(config) = &self.config {
            let _ = std::fs::remove_file(config);
        }
    }
}

impl Exporter {
    fn postgres(url: &str) -> Exporter {
        let port = free_port();
        let mut command = tokio::process::Command::new(program("prometheus-postgres-exporter"));
        command
            .args(["--disable-default-metrics", "--disable-settings-metrics"])
            .arg(format!("--extend.query-path={CONTRIB}/prometheus/postgres_exporter.yaml"))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .env("DATA_SOURCE_NAME", url);
        Exporter::start(command, port, None)
    }

    /// With the configuration as it is, but for where the server is.
    fn sql(url: &str) -> Exporter {
        let config = read("prometheus/sql_exporter.yml");
        let placeholder = "postgres://exporter@localhost:5432/postgres?sslmode=disable";
        assert!(config.contains(placeholder));
        let file = std::env::temp_dir().join(format!(
            "sql_exporter_{}_{}.yml",
            server::now_ms(),
            std::process::id()
        ));
        std::fs::write(&file, config.replace(placeholder, url)).expect("a new file");
        let port = free_port();
        let mut command = tokio::process::Command::new(program("prometheus-sql-exporter"));
        command.arg("-config.file").arg(&file).arg("-web.listen-address").arg(format!("127.0.0.1:{port}"));
        Exporter::start(command, port, Some(file))
    }

    fn start(mut command: tokio::process::Command, port: u16, config: Option<PathBuf>) -> Exporter {
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Exporter { process, port, config }
    }

    /// What it exports of queues, once all queries have been run.
    async fn metrics(mut self) -> Samples {
        let begun = Instant::now();
        loop {
            assert!(self.process.try_wait().expect("a child").is_none(), "the exporter has ended");
            let page = page(self.port).await.unwrap_or_default();
            let samples = samples(&page);
            // The one exporter queries at each request, the other by and by, the horizon last.
            if samples.keys().any(|(name, _)| name == "duroxide_queue_horizon_age_seconds") {
                assert!(!page.contains("duroxide_queue untyped"), "{page}");
                return samples;
            }
            assert!(begun.elapsed() < PATIENCE, "no metrics after {PATIENCE:?}: {page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

async fn page(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

/// The samples of queues, under the names that scrape.yml gives them.
fn samples(page: &str) -> Samples {
    let of_queues =
        |line: &&str| line.starts_with("duroxide_queue") || line.starts_with("sql_duroxide_queue");
    page.lines()
        .filter(of_queues)
        .map(|line| {
            let (name, rest) = line.split_once('{').expect("labels");
            let (labels, value) = rest.rsplit_once("} ").expect("a value");
            // No value of ours has a comma or a quote in it.
            let mut labels: BTreeMap<String, String> = labels
                .split("\",")
                .filter_map(|label| label.split_once("=\""))
                .map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned()))
                .collect();
            let name = match (name.strip_prefix("sql_"), labels.get("col")) {
                (Some(name), Some(column)) => format!("{name}_{column}"),
                _ => name.to_owned(),
            };
            labels.retain(|label, _| !OWN_LABELS.contains(&label.as_str()));
            ((name, labels), value.parse().expect("a number"))
        })
        .collect()
}
