//! A database to call functions in, and what must hold of each call.

use crate::catalogue::{self, Function};
use crate::random::Random;
use crate::rows;
use crate::values::{CANARIES, Values};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::outcome::{self, Outcome, must};
use duroxide_queue_tests::{queue, server};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnection, PgDatabaseError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// The queues, bare and quoted.
pub const QUEUES: [(&str, &str); 2] = [("fuzz", "fuzz"), ("q\" '\\$1.%I", "\"q\"\" '\\$1.%I\"")];

/// Tables of a queue, those of the client and ours.
const TABLES: [&str; 12] = [
    "instances",
    "executions",
    "history",
    "orchestrator_queue",
    "worker_queue",
    "instance_locks",
    "sessions",
    "kv_store",
    "kv_delta",
    "_duroxide_migrations",
    "dead_letters",
    "_duroxide_queue",
];

/// What else a function that manages queues may change.
const CATALOG: [&str; 4] = [
    "pg_namespace t",
    "pg_depend t",
    "pg_proc t WHERE t.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)",
    "pg_class t WHERE t.relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)",
];

/// What a Rust program says when it did not mean to fail.
const RUST_WORDS: [&str; 7] =
    [".rs:", "panicked", "unwrap()", "RUST_BACKTRACE", "src/", "out of bounds", "Option::"];

/// SQLSTATEs that say nothing, that clients take for something else, or that only a broken server gives.
const UNCLEAR: [&str; 10] = ["XX", "42601", "57", "22000", "0A", "40", "08", "28", "53", "58"];

/// Calls with fitting arguments after which a function that has not succeeded is taken for broken.
const MILD_CALLS: usize = 100;

/// Faults that are told in full.
const TOLD: usize = 12;

/// The encoding of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Latin1,
    EucJp,
    SqlAscii,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF8",
            Encoding::Latin1 => "LATIN1",
            Encoding::EucJp => "EUC_JP",
            Encoding::SqlAscii => "SQL_ASCII",
        }
    }

    /// Whether a literal's bytes are text in this encoding. What is not is refused before the call.
    pub fn can_hold(self, literal: &str) -> bool {
        let is_unicode = literal.starts_with("U&");
        let bytes: &[&str] = match self {
            Encoding::SqlAscii => return !is_unicode,
            Encoding::Latin1 => return !is_unicode,
            Encoding::Utf8 => &["E'\\xe9'", "E'\\xb0\\xa1", "E'\\xa9\\xa1", "E'\\xff"],
            Encoding::EucJp => &["E'\\xe9'", "E'caf", "E'e\\xcc", "E'\\xf0", "E'\\xff", "U&'\\20AC"],
        };
        !bytes.iter().any(|start| literal.starts_with(start))
    }
}

/// A database, and what has been seen in it.
pub struct Target {
    pub values: Values,
    pub session: PgConnection,
    database: String,
    pid: i32,
    functions: Vec<Function>,
    /// Those of the last call.
    arguments: String,
    look_at_tables: String,
    look_at_all: String,
    /// What the tables are like, as long as nothing has been written since.
    state: Option<String>,
    /// Whether rows were put in that no function would write.
    has_foreign_rows: bool,
    calls: u64,
    codes: BTreeMap<String, u64>,
    succeeded: BTreeSet<String>,
    /// Of the backend's own, at the first batch, and whenever twice as many calls have been made.
    memory_kb: Vec<(u64, u64)>,
    faults: Vec<String>,
}

impl Target {
    /// Makes a database with queues, schemas that are none, and stored values.
    pub async fn make(encoding: Encoding, random: Random) -> Target {
        server::quiet_logs();
        let name = encoding.name();
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let database =
            format!("t_fuzz_{}_{}_{}_{number}", name.to_lowercase(), server::now_ms(), std::process::id());
        let mut admin = server::connect(None).await;
        must(
            &mut admin,
            &format!("CREATE DATABASE {database} ENCODING '{name}' LOCALE 'C' TEMPLATE template0"),
        )
        .await;
        let options = server::options().database(&database);
        let mut session = server::open(options.clone()).await;
        must(&mut session, include_str!("setup.sql")).await;
        for (bare, _) in QUEUES {
            let bare = bare.replace('\'', "''");
            must(&mut session, &format!("SELECT duroxide_queue.create_queue('{bare}')")).await;
        }
        // duroxide-pg's migrations hold characters that only UTF-8 has.
        if encoding == Encoding::Utf8 {
            let url = options.to_url_lossy().to_string();
            for schema in ["adoptable", "adopted"] {
                queue::open(&url, schema, MigrationPolicy::ApplyAll).await.pool().close().await;
            }
            must(&mut session, "SELECT duroxide_queue.adopt_queue('adopted')").await;
        }
        let functions = catalogue::functions(&mut session, &QUEUES.map(|(bare, _)| bare)).await;
        let mut target = Target {
            values: Values { random, encoding },
            pid: 0,
            session,
            database,
            functions,
            arguments: String::new(),
            look_at_tables: digests(&[]),
            look_at_all: digests(&CATALOG),
            state: None,
            has_foreign_rows: false,
            calls: 0,
            codes: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            memory_kb: Vec::new(),
            faults: Vec::new(),
        };
        target.begin_session().await;
        target
    }

    async fn begin_session(&mut self) {
        must(&mut self.session, "SET statement_timeout = '20s'").await;
        self.pid = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut self.session)
            .await
            .expect("a new session answers");
        self.state = None;
    }

    /// Empties the tables and fills them: with what functions would have written, and now and then
    /// with what they would not.
    pub async fn fill(&mut self) {
        self.fill_as_functions_do().await;
        self.has_foreign_rows = self.values.random.percent(30);
        if self.has_foreign_rows {
            for (_, queue) in QUEUES {
                rows::insert(self, queue, 10).await;
            }
        }
        self.state = None;
    }

    async fn fill_as_functions_do(&mut self) {
        self.empty().await;
        for (_, queue) in QUEUES {
            must(&mut self.session, &include_str!("fill.sql").replace("{q}", queue)).await;
        }
        self.has_foreign_rows = false;
    }

    /// Empties the tables.
    pub async fn empty(&mut self) {
        // For so few rows TRUNCATE takes ten times as long.
        let tables = QUEUES.iter().flat_map(|(_, queue)| {
            TABLES
                .iter()
                .filter(|table| !table.starts_with('_'))
                .map(move |table| format!("DELETE FROM {queue}.{table};"))
        });
        must(&mut self.session, &tables.collect::<String>()).await;
        self.state = None;
    }

    /// Runs a statement that must succeed whatever rows there are, and gives its first row.
    pub async fn expect(&mut self, sql: &str, rows: &[String]) -> Option<Vec<Option<String>>> {
        self.calls += 1;
        match outcome::run(&mut self.session, sql).await {
            Outcome::Rows(found) => found.into_iter().next(),
            Outcome::Error(error) => {
                self.fault(sql, &format!("{error}, with these rows:\n  {}", rows.join(";\n  ")));
                None
            }
        }
    }

    /// Makes one call.
    pub async fn call(&mut self) {
        let random = &mut self.values.random;
        let function = loop {
            let function = random.pick(&self.functions);
            // They are slow, and there are simple ones among them.
            if !function.manages || random.percent(50) {
                break function;
            }
        };
        let mild = random.percent(45);
        let given = function.arguments.len()
            - if random.percent(25) { random.below(function.optional as u64 + 1) as usize } else { 0 };
        self.call_with_any(&function, given, mild).await;
    }

    async fn call_with_any(&mut self, function: &Function, given: usize, mild: bool) {
        let arguments: Vec<String> = function.arguments[..given]
            .iter()
            .map(|argument| self.values.argument(function, argument, mild))
            .collect();
        self.call_with(function, &arguments).await;
    }

    /// Gives each function each canary for each text that it takes.
    pub async fn call_with_canaries(&mut self) {
        for function in self.functions.clone() {
            let texts = function.arguments.iter().filter(|argument| argument.sql_type == "text");
            for (text, canary) in texts.flat_map(|text| CANARIES.iter().map(move |canary| (text, canary))) {
                let arguments: Vec<String> = function
                    .arguments
                    .iter()
                    .map(|argument| match argument.name == text.name {
                        true => (*canary).to_owned(),
                        false => self.values.argument(&function, argument, true),
                    })
                    .collect();
                self.call_with(&function, &arguments).await;
            }
        }
    }

    async fn call_with(&mut self, function: &Function, arguments: &[String]) {
        let arguments = arguments.join(", ");
        let sql = format!("SELECT * FROM {}.{}({arguments})", function.schema, function.name);
        self.calls += 1;
        self.arguments = arguments;
        if function.manages {
            self.call_and_roll_back(function, &sql).await;
        } else {
            self.call_for_good(function, &sql).await;
        }
    }

    /// Calls; if that fails, the tables must be as they were.
    async fn call_for_good(&mut self, function: &Function, sql: &str) {
        let before = match self.state.take() {
            Some(state) => state,
            None => self.look(false).await,
        };
        if self.run(sql).await {
            self.succeeded.insert(function.name.clone());
            // Those that only read are taken at their word until the next call that fails.
            self.state = function.only_reads().then_some(before);
            return;
        }
        let after = self.look(false).await;
        if after != before {
            self.fault(sql, &format!("failed and left\n  {after}\n  where there was\n  {before}"));
        }
        self.state = Some(after);
    }

    /// Calls what changes schemas, and takes it back: all must be as before, plans included.
    async fn call_and_roll_back(&mut self, function: &Function, sql: &str) {
        let before = self.look(true).await;
        must(&mut self.session, "BEGIN").await;
        if self.run(sql).await {
            self.succeeded.insert(function.name.clone());
            if self.values.random.percent(30) {
                // Whatever this comes to while the queue is gone or half here: the session bears it.
                self.run("SELECT * FROM fuzz.fetch_work_item(1, 1), fuzz.get_queue_depths(1)").await;
            }
        }
        must(&mut self.session, "ROLLBACK").await;
        let after = self.look(true).await;
        if after != before {
            self.fault(sql, &format!("was rolled back and left\n  {after}\n  where there was\n  {before}"));
        }
        self.state = None;
    }

    /// Runs a call and looks at its error. True if it succeeded.
    pub async fn run(&mut self, sql: &str) -> bool {
        let result = sqlx::raw_sql(sql).fetch_all(&mut self.session).await;
        match result {
            Ok(_) => {
                *self.codes.entry("00000".to_owned()).or_default() += 1;
                true
            }
            Err(sqlx::Error::Database(error)) => {
                let error = error.downcast_ref::<PgDatabaseError>();
                *self.codes.entry(error.code().to_owned()).or_default() += 1;
                if let Some(wrong) = wrong_with(error)
                    && !self.arguments_fail_with(error.code()).await
                {
                    let what = format!("{wrong}: {} {}", error.code(), error.message());
                    self.fault(sql, &format!("{what}; {:?}; {:?}", error.detail(), error.hint()));
                }
                false
            }
            Err(error) => {
                self.fault(sql, &format!("the session broke: {error}"));
                self.session = server::open(server::options().database(&self.database)).await;
                self.begin_session().await;
                false
            }
        }
    }

    /// Whether an error comes from the making of the arguments, before the call: PostgreSQL 15 has
    /// its own words for an escape that SQL_ASCII does not know.
    async fn arguments_fail_with(&mut self, code: &str) -> bool {
        let sql = format!("SELECT {}", self.arguments);
        let result = sqlx::raw_sql(&sql).fetch_all(&mut self.session).await;
        result.is_err_and(|error| {
            error.as_database_error().is_some_and(|error| error.code().as_deref() == Some(code))
        })
    }

    /// What the tables are like: backend, and number and place of all rows, which a write changes.
    /// With `catalog`, also the schemas, tables, functions and privileges.
    async fn look(&mut self, catalog: bool) -> String {
        let sql = if catalog { &self.look_at_all } else { &self.look_at_tables };
        sqlx::query_scalar(sql).fetch_one(&mut self.session).await.expect("the tables are there")
    }

    /// Rows that no moment may show.
    pub async fn check_rows(&mut self) {
        if self.memory_kb.last().is_none_or(|(calls, _)| self.calls >= (2 * calls).max(1)) {
            self.memory_kb.extend(memory_kb(self.pid).map(|kb| (self.calls, kb)));
        }
        if self.has_foreign_rows {
            return;
        }
        for (_, queue) in QUEUES {
            let torn = must(&mut self.session, &include_str!("torn.sql").replace("{q}", queue)).await;
            for row in torn {
                self.fault(queue, &format!("has {row:?}"));
            }
        }
    }

    pub fn fault(&mut self, sql: &str, what: &str) {
        let cut: String = sql.chars().take(15000).collect();
        self.faults.push(format!("{cut}\n  {}", what.chars().take(15000).collect::<String>()));
    }

    /// Takes it for a fault if a function never succeeds: then what it does was never tried.
    ///
    /// Those that chance has not let succeed so far get mild calls in tables as they should be:
    /// at least a quarter of those succeeds (measured for each), so that one that never does is broken.
    pub async fn require_successes(&mut self) {
        for function in self.functions.clone() {
            for _ in 0..MILD_CALLS {
                if self.succeeded.contains(&function.name) {
                    break;
                }
                self.fill_as_functions_do().await;
                self.call_with_any(&function, function.arguments.len(), true).await;
            }
            if !self.succeeded.contains(&function.name) {
                self.faults.push(format!("never succeeded: {}", function.name));
            }
        }
    }

    /// Tells what was seen, and fails if there was a fault.
    pub fn judge(&self, seed: u64) {
        let name = self.values.encoding.name();
        println!("{name}: {} calls, by SQLSTATE {:?}", self.calls, self.codes);
        println!("{name}: memory of the backend's own, as (calls, kB): {:?}", self.memory_kb);
        let faults = &self.faults;
        assert!(
            faults.is_empty(),
            "DUROXIDE_QUEUE_FUZZ_SEED={seed}, {name}: {} faults\n{}",
            faults.len(),
            faults[..faults.len().min(TOLD)].join("\n")
        );
    }

    /// Removes the database. That of a failed test stays.
    pub async fn remove(self) {
        drop(self.session);
        must(&mut server::connect(None).await, &format!("DROP DATABASE {} WITH (FORCE)", self.database))
            .await;
    }
}

/// A query for one text: the backend, and a digest of each table of the queues and of `more`.
fn digests(more: &[&str]) -> String {
    const DIGEST: &str = "count(*) || ':' || coalesce(sum(hashtext(t.ctid::text || t.xmin::text)), 0)";
    let tables =
        QUEUES.iter().flat_map(|(_, queue)| TABLES.iter().map(move |table| format!("{queue}.{table} t")));
    let digests: Vec<String> = tables
        .chain(more.iter().map(|&table| table.to_owned()))
        .map(|table| format!("(SELECT {DIGEST} FROM {table})"))
        .collect();
    format!("SELECT concat_ws(' ', pg_backend_pid(), {})", digests.join(", "))
}

/// What is wrong with an error beyond that there is one.
fn wrong_with(error: &PgDatabaseError) -> Option<&'static str> {
    if UNCLEAR.iter().any(|start| error.code().starts_with(start)) {
        return Some("an SQLSTATE that tells nothing");
    }
    if error.code() == "22012" {
        return Some("an argument was run as SQL");
    }
    let texts = [Some(error.message()), error.detail(), error.hint()];
    let mut words =
        RUST_WORDS.iter().flat_map(|word| texts.iter().flatten().map(move |text| text.contains(word)));
    words.any(|found| found).then_some("a text that speaks of Rust")
}

/// Memory of a process that is its own, in kB; `None` where the server is on another machine.
fn memory_kb(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}
