//! The functions of a queue, called by name.

use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// A queue, and the connection to it.
pub struct Queue {
    pub db: Client,
    pub name: String,
}

/// An argument with its type: `query_typed` wants to know it, having no statement to ask.
pub type Argument = (Box<dyn ToSql + Sync>, Type);

pub fn text(value: &str) -> Argument {
    (Box::new(value.to_owned()), Type::TEXT)
}
pub fn int(value: i64) -> Argument {
    (Box::new(value), Type::INT8)
}
pub fn jsonb(value: impl Into<Value>) -> Argument {
    (Box::new(value.into()), Type::JSONB)
}

/// The queue goes by its callers' clocks: each call says what time it is, in milliseconds of the Unix epoch.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64)
}

impl Queue {
    /// Calls a function of the queue and returns its row. The queue's name goes into the statement, not into
    /// `search_path`, and `query_typed` prepares nothing under a name: no call leaves anything in the session, so any
    /// connection of a pool, or of pgbouncer, will do for the next.
    pub async fn call(&self, call: &str, values: &[Argument]) -> Result<Option<Row>, Error> {
        let query = format!("SELECT * FROM \"{}\".{call}", self.name.replace('"', "\"\""));
        let values: Vec<_> = values.iter().map(|(value, kind)| (value.as_ref(), kind.clone())).collect();
        Ok(self.db.query_typed(&query, &values).await?.pop())
    }
}
