//! One pass over the queues that the reader may see.
//!
//! Each queue is read in a subtransaction that is undone at its end, whatever happened in it: what
//! goes wrong in one queue concerns no other, and its locks are given back before the next one's are
//! taken, so that a reader who stays in a transaction holds nobody up. A table or index that is
//! locked against readers is not waited for.
//!
//! The tables belong to their owner. Who may read is decided with the reader's rights and from the
//! catalog alone (`readable_queues`); what could run the owner's code is refused, under a lock that
//! keeps the tables as they are (`queue_problem`); and the rows are read with the owner's rights, so
//! that whatever gets past that could only do what the owner may do anyway.

use crate::clock;
use crate::error::{Error, Result};
use crate::names::Names;
use crate::pg::result_set::ResultSet;
use crate::pg::spi::{self, Session, Value};
use crate::pg::subtransaction::{self, Undone};
use crate::pg::values::Timestamptz;
use crate::pg::{encoding, guc, identity, planner, relation_lock};
use core::ffi::CStr;
use pgrx::pg_sys;

/// What one view shows of a queue.
pub(super) struct Observation {
    /// Reads one queue, as `Names::fill` has it; only what is there already and `FROM ONLY` the tables,
    /// since a table that inherits may be anything. `$1` is the time that is asked about, `$2` the same
    /// in milliseconds of the Unix epoch, `$3` whether the reader may read the tables himself; more
    /// arguments come from `$4` on.
    pub(super) text: &'static str,
    /// What is shown of a queue that could not be read: `$1` its name, `$2` why. With `None` a notice says so.
    pub(super) problem: Option<&'static CStr>,
}

/// A queue as the catalog shows it.
struct Queue {
    name: Vec<u8>,
    schema: pg_sys::Oid,
}

const QUEUES: &CStr =
    c"SELECT q.queue::text, q.schema FROM duroxide_queue.readable_queues() q ORDER BY q.queue";

/// Asked once the tables are locked, and in one statement, so that what it says is true together and stays so.
const READABLE: &CStr = c"SELECT q.owner, q.has_select, duroxide_queue.queue_problem(q.schema)
    FROM duroxide_queue.readable_queues($1) q";

/// Tables first: while these are locked, no index comes or goes unless it is built beside the readers.
const TABLES: &CStr = c"SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = $1 AND c.relkind = 'r'
      AND c.relname IN ('orchestrator_queue', 'worker_queue', 'instance_locks', 'instances', 'executions', 'history',
                        'sessions', 'dead_letters', '_duroxide_migrations')
    ORDER BY c.oid";

const INDEXES: &CStr = c"SELECT i.indexrelid FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = $1 AND c.relkind = 'r'
      AND c.relname IN ('orchestrator_queue', 'worker_queue', 'instance_locks', 'instances', 'executions', 'history',
                        'sessions', 'dead_letters', '_duroxide_migrations')
    ORDER BY i.indexrelid";

/// Settings that a read of somebody else's tables wants, whatever the reader's are. The lock timeout is
/// for what slips in between a look and a use; policies are an error rather than a filter.
const SETTINGS: &[(&CStr, &CStr)] =
    &[(c"lock_timeout", c"10ms"), (c"row_security", c"off"), (c"constraint_exclusion", c"off")];

/// Hands what an observation says of each queue to `result`, as of `at`.
pub(super) fn over_queues(
    result: &ResultSet,
    observation: &Observation,
    at: Timestamptz,
    more: &[Value<'_>],
) -> Result<()> {
    let now_ms = clock::unix_ms(at).ok_or(Error::NumberOutOfRange("at"))?;
    for queue in readable() {
        pgrx::check_for_interrupts!();
        let read = subtransaction::undone(|| {
            read(&queue, result, observation.text, |has_select: bool| {
                [&[at.into(), now_ms.into(), has_select.into()], more].concat()
            })
        });
        let problem = match read {
            Undone::Returned(Ok(())) => continue,
            Undone::Returned(Err(problem)) => problem,
            Undone::Failed(error) => error.into_bytes(),
        };
        let Some(text) = observation.problem else {
            let shown = |bytes| encoding::sendable(String::from_utf8_lossy(bytes));
            pgrx::notice!("queue \"{}\" is left out: {}", shown(&queue.name), shown(&problem));
            continue;
        };
        let session = Session::open();
        let arguments = [queue.name.as_slice().into(), problem.as_slice().into()];
        result.append(&spi::run_once(&session, text, &arguments));
    }
    Ok(())
}

fn readable() -> Vec<Queue> {
    let session = Session::open();
    let rows = spi::run_once(&session, QUEUES, &[]);
    rows.iter().filter_map(|row| Some(Queue { name: row.text(1)?.to_vec(), schema: row.oid(2)? })).collect()
}

/// Reads one queue, or says why not. One that has gone, or that the reader may see no more, shows nothing.
fn read<'a>(
    queue: &Queue,
    result: &ResultSet,
    text: &str,
    arguments: impl FnOnce(bool) -> Vec<Value<'a>>,
) -> Result<(), Vec<u8>> {
    let session = Session::open();
    if ![TABLES, INDEXES].iter().all(|relations| try_to_lock(&session, relations, queue.schema)) {
        return Err(b"a table or an index of it is locked by another session".to_vec());
    }
    let readable = spi::run_once(&session, READABLE, &[queue.schema.into()]);
    let Some(row) = readable.first() else { return Ok(()) };
    if let Some(problem) = row.text(3) {
        return Err(problem.to_vec());
    }
    let (Some(owner), Some(has_select)) = (row.oid(1), row.bool(2)) else { return Ok(()) };
    read_as(owner, &session, &Names::of(&queue.name).fill(text), &arguments(has_select), result);
    Ok(())
}

/// Locks what a query for OIDs finds (its `$1` is one, too) against changes, or tells that somebody has locked some of it.
pub(super) fn try_to_lock(session: &Session, relations: &CStr, of: pg_sys::Oid) -> bool {
    let found = spi::run_once(session, relations, &[of.into()]);
    found.iter().filter_map(|row| row.oid(1)).all(relation_lock::try_to_read)
}

/// Adds the rows of a query that runs with the rights of the owner of what it reads, and no others.
pub(super) fn read_as(
    owner: pg_sys::Oid,
    session: &Session,
    text: &CStr,
    arguments: &[Value<'_>],
    result: &ResultSet,
) {
    identity::as_role(owner, || {
        guc::with_settings(SETTINGS, || {
            planner::during_call(|| result.append(&spi::run_once(session, text, arguments)));
        });
    });
}
