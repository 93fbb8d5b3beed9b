//! Removes a queue from its schema, from inside: `cleanup_schema()` of the client.

use crate::db::Db;

/// Everything that a queue's schema holds of ours, dropped by name and only by name.
const SCRIPT: &str = include_str!("../../sql/queue_drop.sql");

/// Drops the tables and the functions of the queue, the called one among them.
pub(crate) fn drop_everything(db: &Db) {
    db.run_script(SCRIPT);
}
