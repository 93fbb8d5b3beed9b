//! Where a scan for candidates starts, when its way from the head of the queue is long.
//!
//! Thousands of messages that wait for one leased instance, or rows that are dead, but not yet
//! vacuumed away or still seen by an old snapshot elsewhere, lie at the heads of the indexes, and no
//! index can skip them. A backend that had to walk over them remembers where the first candidates
//! were, and starts there for a while.
//!
//! While the way is short, which it is unless something is out of the ordinary, nothing is
//! remembered and the order of the claim is exact. Otherwise older work that appears is still found
//! at once if it was enqueued since; if it was given back by another session, when the memory ends,
//! after ten times what the walk took; and whenever the scan from the remembered place finds nothing.

use crate::clock::visible_until;
use crate::db::{Db, Statement};
use crate::error::Result;
use crate::pg::buffers;
use crate::pg::spi::{self, Rows, Value};
use crate::pg::values::Timestamptz;
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

/// Blocks that a short walk may touch, beside those that its candidates need. Blocks and not time, so
/// that a machine under load remembers no more than an idle one.
const SHORT_WALK_BLOCKS: u64 = 300;
const BLOCKS_PER_CANDIDATE: u64 = 8;
/// How many times as long as the walk it is remembered: a tenth of the time goes into walking.
const REMEMBERED_FOR: u32 = 10;

/// The place of a row in the order of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) visible_at: Timestamptz,
    pub(crate) id: i64,
}

/// Where a scan starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Among unclaimed rows.
    pub(crate) ready: Place,
    /// Among claimed rows: the end of their lease, milliseconds of the caller's epoch.
    pub(crate) lease_end_ms: i64,
}

impl Start {
    /// Before everything.
    pub(crate) const HEAD: Start =
        Start { ready: Place { visible_at: Timestamptz(i64::MIN), id: i64::MIN }, lease_end_ms: i64::MIN };
}

/// Where the first candidates were.
#[derive(Clone, Copy, Debug)]
struct Memory {
    start: Start,
    /// Which rows were asked for: what one dispatcher may not take, another may.
    filter: u64,
    until: Instant,
    /// The highest id when the place was noted: a row with a higher one is newer, wherever it lies.
    known_id: i64,
    /// When to look for newer rows again: a tenth of the time goes into that at most, too.
    look_at: Instant,
}

/// What a backend remembers of one table of one queue.
#[derive(Default)]
pub(crate) struct Remembered {
    place: Cell<Option<Memory>>,
    is_idle: Cell<bool>,
    /// Whether plans are made: that reads catalogs, and would pass for a long walk.
    is_warm: Cell<bool>,
}

impl Remembered {
    /// Lets the next scan start at the head: something before the place may be free now.
    pub(crate) fn forget(&self) {
        self.place.set(None);
    }

    fn place_for(&self, filter: u64) -> Option<Memory> {
        self.place.get().filter(|memory| memory.filter == filter && Instant::now() < memory.until)
    }
}

/// A row that can be claimed.
pub(crate) struct Row<C> {
    pub(crate) place: Place,
    /// Of an expired lease, where the row has one.
    pub(crate) lease_end_ms: Option<i64>,
    pub(crate) candidate: C,
}

/// What a scan finds.
pub(crate) struct Found<C> {
    rows: Vec<Row<C>>,
    /// Where the next scan can start if nothing changes.
    start: Start,
}

impl<C> Found<C> {
    /// A scan that has found nothing yet among what was visible and expired at `now_ms`.
    pub(crate) fn nothing_until(now_ms: i64) -> Self {
        let ready = Place { visible_at: visible_until(now_ms), id: i64::MAX };
        Found { rows: Vec::new(), start: Start { ready, lease_end_ms: now_ms.saturating_add(1) } }
    }

    /// Adds unclaimed rows, first first.
    pub(crate) fn add_ready(&mut self, rows: Vec<Row<C>>) {
        let old = self.rows.len();
        self.rows.extend(rows);
        if let Some(first) = self.rows.get(old) {
            self.start.ready = first.place;
        }
    }

    /// Adds rows of expired leases, the first that has expired first.
    pub(crate) fn add_expired(&mut self, rows: Vec<Row<C>>) {
        let old = self.rows.len();
        self.rows.extend(rows);
        if let Some(end_ms) = self.rows.get(old).and_then(|row| row.lease_end_ms) {
            self.start.lease_end_ms = end_ms;
        }
    }
}

/// What tells apart the rows that different callers may take, as a number: two that happen to have the
/// same would mislead a scan for no longer than a memory lasts.
pub(crate) fn filter(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The statements of a scan. Those that find rows begin with the scan's own parameters, the first two of which
/// are the time as `timestamptz` and in milliseconds; their own follow.
pub(crate) struct Statements {
    /// Whether there is anything to scan at all, whoever may take it: cheaper than a scan. Parameters: the time, twice.
    pub(crate) any: &'static Statement,
    /// Whether a lease has expired: mostly none has, and a look costs a fraction. Parameters: the time, and the first
    /// end of a lease.
    pub(crate) any_expired: &'static Statement,
    /// Rows of expired leases; own parameter: the first end of a lease.
    pub(crate) expired: &'static Statement,
    /// Unclaimed rows; own parameters: the place to start at.
    pub(crate) ready: &'static Statement,
    /// Unclaimed rows before a place with a higher id than a known one; own parameters: place and id.
    pub(crate) newer: &'static Statement,
    /// The highest id that there is.
    pub(crate) highest_id: &'static Statement,
}

/// A scan for the candidates of one kind of claim.
pub(crate) trait Scan {
    type Candidate;

    fn statements(&self) -> Statements;

    /// See [`filter`].
    fn filter(&self) -> u64;

    /// The caller's time, now.
    fn now_ms(&self) -> Result<i64>;

    /// What the statements that find rows begin with.
    fn arguments(&self, now_ms: i64, window: i64) -> Vec<Value<'_>>;

    /// One row of theirs.
    fn row(&self, row: &spi::Row<'_>) -> Option<Row<Self::Candidate>>;
}

fn is_any<S: Scan>(scan: &S, db: &Db) -> Result<bool> {
    let now_ms = scan.now_ms()?;
    let any = db.query(scan.statements().any, &[visible_until(now_ms).into(), now_ms.into()]);
    Ok(any.first().and_then(|row| row.bool(1)) == Some(true))
}

/// The first candidates from `start` on, at least a window of them if there are as many.
fn scan_from<S: Scan>(scan: &S, db: &Db, start: &Start, window: i64) -> Result<Found<S::Candidate>> {
    let statements = scan.statements();
    let now_ms = scan.now_ms()?;
    let rows = |statement, own: &[Value<'_>]| {
        let arguments = [scan.arguments(now_ms, window).as_slice(), own].concat();
        rows_of(scan, &db.query(statement, &arguments))
    };
    let mut found = Found::nothing_until(now_ms);
    if db.query(statements.any_expired, &[now_ms.into(), start.lease_end_ms.into()]).len() > 0 {
        found.add_expired(rows(statements.expired, &[start.lease_end_ms.into()]));
    }
    found.add_ready(rows(statements.ready, &[start.ready.visible_at.into(), start.ready.id.into()]));
    Ok(found)
}

/// Candidates that are newer than their place before the memory's says.
fn newer<S: Scan>(scan: &S, db: &Db, memory: &Memory, window: i64) -> Result<Vec<Row<S::Candidate>>> {
    let Place { visible_at, id } = memory.start.ready;
    let own = [visible_at.into(), id.into(), memory.known_id.into()];
    let arguments = [scan.arguments(scan.now_ms()?, window).as_slice(), &own].concat();
    Ok(rows_of(scan, &db.query(scan.statements().newer, &arguments)))
}

fn rows_of<S: Scan>(scan: &S, rows: &Rows<'_>) -> Vec<Row<S::Candidate>> {
    rows.iter().filter_map(|row| scan.row(&row)).collect()
}

fn highest_id<S: Scan>(scan: &S, db: &Db) -> Option<i64> {
    db.query(scan.statements().highest_id, &[]).first()?.int8(1)
}

/// The first candidates in the order of the claim. What a repeated scan finds is not remembered: it
/// passes over rows that the next call may take.
pub(crate) fn candidates<S: Scan>(
    scan: &S,
    db: &Db,
    remembered: &Remembered,
    window: i64,
    is_repeated: bool,
) -> Result<Vec<S::Candidate>> {
    let filter = scan.filter();
    if let Some(memory) = remembered.place_for(filter) {
        let rows = from_memory(scan, db, remembered, memory, window)?;
        if !rows.is_empty() {
            return Ok(in_order(rows));
        }
    }
    // Who found nothing last time mostly finds nothing again: an idle fleet polls all day.
    if remembered.is_idle.get() && !is_any(scan, db)? {
        return Ok(Vec::new());
    }
    let began = Instant::now();
    let touched_before = buffers::touched();
    let found = scan_from(scan, db, &Start::HEAD, window)?;
    let touched = buffers::touched() - touched_before;
    let short = SHORT_WALK_BLOCKS + BLOCKS_PER_CANDIDATE * found.rows.len() as u64;
    let is_long = remembered.is_warm.replace(true) && touched > short;
    if !is_repeated {
        remembered.is_idle.set(found.rows.is_empty());
        remembered.place.set((is_long && !found.rows.is_empty()).then(|| Memory {
            start: found.start,
            filter,
            until: Instant::now() + began.elapsed() * REMEMBERED_FOR,
            known_id: highest_id(scan, db).unwrap_or(i64::MAX),
            look_at: began,
        }));
    }
    Ok(in_order(found.rows))
}

fn from_memory<S: Scan>(
    scan: &S,
    db: &Db,
    remembered: &Remembered,
    memory: Memory,
    window: i64,
) -> Result<Vec<Row<S::Candidate>>> {
    let mut rows = scan_from(scan, db, &memory.start, window)?.rows;
    let began = Instant::now();
    if memory.look_at <= began {
        rows.extend(newer(scan, db, &memory, window)?);
        let look_at = Instant::now() + began.elapsed() * REMEMBERED_FOR;
        remembered.place.set(Some(Memory { look_at, ..memory }));
    }
    Ok(rows)
}

fn in_order<C>(mut rows: Vec<Row<C>>) -> Vec<C> {
    rows.sort_by_key(|row| row.place);
    rows.into_iter().map(|row| row.candidate).collect()
}
