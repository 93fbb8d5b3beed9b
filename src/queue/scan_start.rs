//! Where a scan for candidates starts, when its way from the head of the queue is long.
//!
//! Thousands of messages that wait for one leased instance, or that are dead but still seen by an
//! old snapshot elsewhere, lie at the head of the index, and no index can skip them. A backend that
//! had to walk over them remembers where the first candidate was, and starts there for a while.
//!
//! While the way is short, which it is unless something is out of the ordinary, nothing is
//! remembered and the order of the claim is exact. Otherwise older work that appears is still found
//! at once if it was enqueued since; if it was given back by another session, when the memory ends,
//! after ten times what the walk took; and whenever the scan from the remembered place finds nothing.

use crate::db::{Db, Planning, Statement};
use crate::pg::values::Timestamptz;
use crate::queue::claim_instance::Versions;
use std::time::{Duration, Instant};

/// A walk that took less is short.
const LONG_WALK: Duration = Duration::from_millis(2);
/// How many times as long as the walk it is remembered: a tenth of the time goes into walking.
const REMEMBERED_FOR: u32 = 10;

/// The place of a message in the order of the claim, and the highest id when it was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanStart {
    pub(crate) visible_at: Timestamptz,
    pub(crate) id: i64,
    pub(crate) known_id: i64,
}

impl ScanStart {
    /// From the head; nothing is before it, so nothing new can be.
    pub(crate) const WHOLE_QUEUE: ScanStart =
        ScanStart { visible_at: Timestamptz(i64::MIN), id: i64::MIN, known_id: i64::MAX };

    pub(crate) fn is_whole_queue(&self) -> bool {
        *self == Self::WHOLE_QUEUE
    }
}

/// What a backend remembers of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    start: ScanStart,
    versions: Versions,
    until: Instant,
}

/// Where the next scan for these versions starts. What one dispatcher may not take, another may.
pub(crate) fn remembered(db: &Db, versions: Versions) -> ScanStart {
    match db.scan_memory().get() {
        Some(memory) if memory.versions == versions && Instant::now() < memory.until => memory.start,
        _ => ScanStart::WHOLE_QUEUE,
    }
}

/// Starts the next scan at the head.
pub(crate) fn forget(db: &Db) {
    db.scan_memory().set(None);
}

static HIGHEST_ID: Statement = Statement {
    text: "SELECT pg_catalog.max(q.id) FROM {q}.orchestrator_queue q",
    parameters: &[],
    planning: Planning::ByIndex,
};

/// Notes where a scan of the whole queue found its first candidate, if the walk there was long.
pub(crate) fn remember(db: &Db, versions: Versions, first: Option<(Timestamptz, i64)>, walk: Duration) {
    let memory = match first {
        Some((visible_at, id)) if walk >= LONG_WALK => {
            let known_id = db.query(&HIGHEST_ID, &[]).first().and_then(|row| row.int8(1)).unwrap_or(i64::MAX);
            let start = ScanStart { visible_at, id, known_id };
            Some(Memory { start, versions, until: Instant::now() + walk * REMEMBERED_FOR })
        }
        _ => None,
    };
    db.scan_memory().set(memory);
}
