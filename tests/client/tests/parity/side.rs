//! One side of the comparison: a queue, the session that runs the script on it, and what its answers
//! look like once names, lock tokens and clocks are taken out.

use crate::contract;
use crate::differences::Difference;
use crate::script::{self, Call, NOW_MS, Step};
use duroxide_queue_tests::outcome::{Outcome, must, run};
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;
use std::collections::{BTreeMap, HashMap};

/// Leases begin some milliseconds after the time that the script tells; they are compared in steps
/// of this, and the script's leases lie further apart.
const GRAIN_MS: i64 = 5_000;
/// The same for leases by the server's clock: a group's answers on it come within this time.
const SERVER_GRAIN_MS: i64 = 10_000;
/// A time so close to one that is known is told as the distance from it.
const NEAR_MS: i64 = 100 * 86_400_000;

/// Stands for the tables after a call that was refused.
pub const NOTHING_WRITTEN: &str = "nothing written";

/// Table and its rows as text.
pub type Tables = BTreeMap<&'static str, Vec<String>>;

pub struct Side {
    queue: Queue,
    session: PgConnection,
    server_ms: i64,
    /// Lock token and the script's name for it.
    tokens: HashMap<String, String>,
    names: HashMap<String, String>,
}

impl Side {
    pub async fn on(kind: Kind) -> Side {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        must(&mut session, "SET TimeZone = 'UTC'; SET duroxide_queue.lease_clock = latest").await;
        Side { queue, session, server_ms: 0, tokens: HashMap::new(), names: HashMap::new() }
    }

    /// Removes what the script's end, `cleanup_schema()`, has left.
    pub async fn remove(mut self) {
        must(&mut self.session, &format!("DROP SCHEMA {} CASCADE", self.queue.schema())).await;
    }

    /// Empties the tables and looks at the server's clock.
    pub async fn begin_group(&mut self) {
        for table in contract::table_queries().keys() {
            must(&mut self.session, &format!("DELETE FROM {table}")).await;
        }
        let clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        self.server_ms = run(&mut self.session, clock).await.value().parse().expect("a number");
        self.tokens.clear();
        self.names.clear();
    }

    /// Runs a step; what there is to compare comes with a name.
    pub async fn take(&mut self, step: &Step) -> Vec<(String, String)> {
        match step {
            Step::Setup(sql) => {
                let sql = self.fill(sql);
                must(&mut self.session, &sql).await;
                Vec::new()
            }
            Step::Call(call) if call.null_argument.is_some() => {
                must(&mut self.session, "BEGIN").await;
                let outcome = self.call(call).await;
                let refused = outcome.starts_with("error");
                let tables = if refused { NOTHING_WRITTEN.into() } else { self.all_tables().await };
                must(&mut self.session, "ROLLBACK").await;
                vec![(call.name.clone(), outcome), (format!("{}/tables", call.name), tables)]
            }
            Step::Call(call) => vec![(call.name.clone(), self.call(call).await)],
        }
    }

    async fn call(&mut self, call: &Call) -> String {
        let sql = self.fill(&call.sql);
        let outcome = run(&mut self.session, &sql).await;
        if let Some(name) = &call.token {
            let token = found_token(&outcome).unwrap_or_else(|| format!("no token {name}"));
            self.names.insert(token.clone(), name.clone());
            self.tokens.insert(name.clone(), token);
        }
        match outcome {
            Outcome::Error(error) => self.neutral(&error.to_string()),
            Outcome::Rows(rows) if rows.is_empty() => "no row".into(),
            Outcome::Rows(rows) => {
                let mut rows: Vec<_> = rows.iter().map(|row| self.shown(row)).collect();
                if call.unordered {
                    rows.sort();
                }
                rows.join(" ")
            }
        }
    }

    /// The contents of the tables.
    pub async fn tables(&mut self) -> Tables {
        let mut tables = Tables::new();
        for (table, (columns, query)) in contract::table_queries() {
            let rows = match run(&mut self.session, &query).await {
                Outcome::Rows(rows) => rows,
                Outcome::Error(error) => {
                    tables.insert(table, vec![error.to_string()]);
                    continue;
                }
            };
            let rows = rows.into_iter().map(|row| {
                let cells: Vec<_> = columns
                    .iter()
                    .zip(row)
                    .map(|(column, cell)| cell.map(|cell| self.timeless(column, &cell)))
                    .collect();
                self.shown(&cells)
            });
            tables.insert(table, rows.collect());
        }
        tables
    }

    async fn all_tables(&mut self) -> String {
        let tables = self.tables().await;
        let shown = |(table, rows): (&&str, &Vec<String>)| format!("{table}: {}", rows.join(" "));
        tables.iter().filter(|(_, rows)| !rows.is_empty()).map(shown).collect::<Vec<_>>().join("; ")
    }

    fn fill(&self, sql: &str) -> String {
        let mut sql = script::fill(sql, self.server_ms);
        for (name, token) in &self.tokens {
            sql = sql.replace(&format!(":token({name})"), &format!("'{token}'"));
        }
        assert!(!sql.contains(":token("), "a token that no call has given: {sql}");
        sql
    }

    fn shown(&self, row: &[Option<String>]) -> String {
        let cells: Vec<_> =
            row.iter().map(|cell| cell.as_deref().map_or("NULL".into(), |cell| self.neutral(cell))).collect();
        format!("({})", cells.join("|"))
    }

    /// The text without what is this side's own.
    fn neutral(&self, text: &str) -> String {
        let mut text = text.replace(self.queue.schema(), "<schema>").replace(['\n', '\t'], " ");
        for (token, name) in &self.names {
            text = text.replace(token, &format!("<{name}>"));
        }
        while let Some(place) = text.find("lock_") {
            let end = text[place + 5..].find(|c: char| !c.is_ascii_hexdigit() && c != '-');
            let end = end.map_or(text.len(), |end| place + 5 + end);
            if end - place < 41 {
                break;
            }
            text.replace_range(place..end, "<token>");
        }
        text
    }

    /// Times as distances from the script's or the server's clock.
    fn timeless(&self, column: &str, cell: &str) -> String {
        let is_lease = ["locked_until", "locked_at", "last_activity_at"].contains(&column);
        if !is_lease && !column.ends_with("_at") {
            return cell.to_owned();
        }
        let Ok(ms) = cell.split('.').next().unwrap_or_default().parse::<i64>() else {
            return cell.to_owned();
        };
        let grain = |distance: i64, grain: i64| distance.div_euclid(grain) * grain;
        match (ms.saturating_sub(NOW_MS), ms.saturating_sub(self.server_ms)) {
            (distance, _) if distance.abs() < NEAR_MS && is_lease => {
                format!("now{:+}", grain(distance, GRAIN_MS))
            }
            (distance, _) if distance.abs() < NEAR_MS => {
                let fraction =
                    cell.split_once('.').map_or(String::new(), |(_, fraction)| format!(".{fraction}"));
                format!("now{distance:+}{fraction}")
            }
            (_, distance) if distance.abs() < NEAR_MS && is_lease => {
                format!("server{:+}", grain(distance, SERVER_GRAIN_MS))
            }
            (_, distance) if distance.abs() < NEAR_MS => "server".into(),
            _ if is_lease => grain(ms, GRAIN_MS).to_string(),
            _ => cell.to_owned(),
        }
    }
}

/// What differs between the rows of a table after a group.
pub fn in_tables(
    group: &str,
    table: &str,
    reference: &[String],
    created: &[String],
    adopted: &[String],
) -> Difference {
    Difference {
        call: format!("{group}/tables/{table}"),
        reference: reference.join(" "),
        created: created.join(" "),
        adopted: adopted.join(" "),
    }
}

fn found_token(outcome: &Outcome) -> Option<String> {
    let Outcome::Rows(rows) = outcome else { return None };
    rows.iter().flatten().flatten().find(|cell| cell.starts_with("lock_")).cloned()
}
