//! Where a scan for candidates starts, when its way from the head of the queue is long.
//!
//! Thousands of messages that wait for one leased instance, or rows that are dead, but not yet
//! vacuumed away or still seen by an old snapshot elsewhere, lie at the heads of the indexes, and no
//! index can skip them. A backend that had to walk over them remembers where the first candidates
//! were, or that there were none, and starts there for a while.
//!
//! While the way is as short as in a queue that is at rest, nothing is remembered and the order of the claim is
//! exact. Behind what a busy one leaves at its head a place is remembered for a moment: so long can older work
//! that appears be passed over for newer. After a long walk a place is remembered ten times as long as the walk took,
//! for five seconds at most; older work is still found at once then if it was enqueued since, and if it was given back
//! by another session, or by a transaction that was rolled back or had only locked it, when the memory ends. And whenever the scan from a
//! remembered place finds nothing, though there was something, the next begins at the head. Where a long walk past what others have
//! found nothing, that is remembered three times as long as it took.

use crate::clock::visible_until;
use crate::db::{Db, Statement};
use crate::error::Result;
use crate::pg::buffers;
use crate::pg::spi::{self, Rows, Value};
use crate::pg::values::Timestamptz;
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Blocks that a walk touches at most which is not remembered, beside those that its candidates need. Blocks and
/// not time, so that a machine under load remembers no more than an idle one.
const SHORT_WALK_BLOCKS: u64 = 16;
/// Blocks that a walk touches at least which is remembered for longer than a moment.
const LONG_WALK_BLOCKS: u64 = 300;
const BLOCKS_PER_CANDIDATE: u64 = 8;
/// Rows that may come to be while a long walk lasts, or have an id by then and are not committed. More than that are found when the
/// memory ends.
const ROWS_MEANWHILE: i64 = 100;
/// How long the place is remembered where a walk that was not long ended.
const MOMENT: Duration = Duration::from_millis(20);
/// How many times as long as a long walk it is remembered: a tenth of the time goes into walking.
const REMEMBERED_FOR: u32 = 10;
/// The same for a walk past others that found nothing: what they have may be free in a moment, but whoever polls behind
/// all that waits for leased instances must not walk all the time.
const REMEMBERED_IN_VAIN_FOR: u32 = 3;
/// And no longer than this, for a walk that took long because something else held the machine up.
const LONGEST_MEMORY: Duration = Duration::from_secs(5);

/// The place of a row in the order of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) visible_at: Timestamptz,
    pub(crate) id: i64,
}

impl Place {
    /// Before everything.
    pub(crate) const FIRST: Place = Place { visible_at: Timestamptz(i64::MIN), id: i64::MIN };

    /// The first place behind this one.
    pub(crate) fn next(self) -> Place {
        Place { id: self.id.saturating_add(1), ..self }
    }
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
    pub(crate) const HEAD: Start = Start { ready: Place::FIRST, lease_end_ms: i64::MIN };
}

/// Where the first candidates were.
#[derive(Clone, Copy, Debug)]
struct Memory {
    start: Start,
    /// Which rows were asked for: what one dispatcher may not take, another may.
    filter: u64,
    until: Instant,
    /// Whether there were none.
    is_empty: bool,
    /// After a long walk.
    newer: Option<Newer>,
}

/// What it takes to find newer rows before the remembered place.
#[derive(Clone, Copy, Debug)]
struct Newer {
    /// A row with a higher id is newer than the walk, wherever it lies: the highest when that ended, less those that may
    /// have come meanwhile.
    known_id: i64,
    /// When to look for them again: a tenth of the time goes into that at most, too, while there is other work.
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

    /// The same where nothing was found: this session has made something free that may lie before the place.
    pub(crate) fn forget_emptiness(&self) {
        self.place.set(self.place.get().filter(|memory| !memory.is_empty));
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
    /// How many there were before those out of turn were dropped.
    seen: usize,
    /// Where the next scan can start if nothing changes.
    start: Start,
}

impl<C> Found<C> {
    /// A scan that has found nothing yet among what was visible and expired at `now_ms`.
    pub(crate) fn nothing_until(now_ms: i64) -> Self {
        let ready = Place { visible_at: visible_until(now_ms), id: i64::MAX };
        Found { rows: Vec::new(), seen: 0, start: Start { ready, lease_end_ms: now_ms.saturating_add(1) } }
    }

    /// Adds unclaimed rows, first first. With `may_have_more`, there may be others behind the last: then rows of expired
    /// leases that come after that are not next in line.
    pub(crate) fn add_ready(&mut self, rows: Vec<Row<C>>, may_have_more: bool) {
        let (first, last) = (rows.first().map(|row| row.place), rows.last().map(|row| row.place));
        self.rows.extend(rows);
        self.seen = self.rows.len();
        self.start.ready = first.unwrap_or(self.start.ready);
        if let Some(last) = last.filter(|_| may_have_more) {
            self.rows.retain(|row| row.place <= last);
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

/// A statement for unclaimed rows in the order of the claim, in two forms. PostgreSQL compares a place with every row of a
/// page of the index (`_bt_check_rowcompare` in nbtutils.c), which costs more than the rest of a look at the first.
pub(crate) struct Ready {
    pub(crate) from_head: Statement,
    /// With the place as last parameters.
    pub(crate) from_place: Statement,
}

/// Both forms of a statement: what stands before and behind the condition on the place, the condition, and the parameters
/// without the place.
macro_rules! ready {
    ([$($before:tt)*], $from_place:literal, [$($behind:tt)*], [$($parameter:expr),*]) => {
        $crate::queue::scan_start::Ready {
            from_head: $crate::db::Statement {
                text: concat!($($before)*, $($behind)*),
                parameters: &[$($parameter),*],
                planning: $crate::db::Planning::InIndexOrder,
            },
            from_place: $crate::db::Statement {
                text: concat!($($before)*, $from_place, $($behind)*),
                parameters: &[$($parameter,)* $crate::db::types::TIMESTAMPTZ, $crate::db::types::INT8],
                planning: $crate::db::Planning::InIndexOrder,
            },
        }
    };
}
pub(crate) use ready;

impl Ready {
    /// Unclaimed rows from a place on.
    pub(crate) fn query<'d>(&'static self, db: &'d Db, arguments: &[Value<'_>], start: Place) -> Rows<'d> {
        if start == Place::FIRST {
            db.query(&self.from_head, arguments)
        } else {
            db.query(&self.from_place, &[arguments, &[start.visible_at.into(), start.id.into()]].concat())
        }
    }
}

/// The statements of a scan. Those that find rows begin with the scan's own parameters, the first two of which
/// are the time as `timestamptz` and in milliseconds; their own follow.
pub(crate) struct Statements {
    /// Whether there is anything to scan at all, whoever may take it: cheaper than a scan. Parameters: the time, twice.
    pub(crate) any: &'static Statement,
    /// Rows of expired leases; own parameter: the first end of a lease.
    pub(crate) expired: &'static Statement,
    /// Unclaimed rows before a place with a higher id than a known one; own parameters: place and id.
    pub(crate) newer: &'static Statement,
    /// The highest id that there is, or was if there is none.
    pub(crate) highest_id: &'static Statement,
}

/// A scan for the candidates of one kind of claim.
pub(crate) trait Scan {
    type Candidate;

    fn statements(&self) -> Statements;

    /// Whether the scan passes over rows that are free as soon as somebody acknowledges a turn or ends a transaction: that
    /// it finds nothing means little then.
    fn passes_over_others(&self) -> bool {
        false
    }

    /// See [`filter`].
    fn filter(&self) -> u64;

    /// The caller's time, now.
    fn now_ms(&self) -> Result<i64>;

    /// Whether a lease has ended from `from_ms` to `now_ms`: mostly none has, and a look costs a fraction of what its rows do.
    fn is_any_expired(&self, db: &Db, now_ms: i64, from_ms: i64) -> bool;

    /// Unclaimed rows from a place on. `are_first` tells that no other row can come before them.
    fn ready<'d>(&self, db: &'d Db, now_ms: i64, window: i64, start: Place, are_first: bool) -> Rows<'d>;

    /// What the statements that find rows begin with.
    fn arguments(&self, now_ms: i64, window: i64) -> Vec<Value<'_>>;

    /// One row of theirs.
    fn row(&self, row: &spi::Row<'_>) -> Option<Row<Self::Candidate>>;
}

fn is_any<S: Scan>(scan: &S, db: &Db, now_ms: i64) -> bool {
    let any = db.query(scan.statements().any, &[visible_until(now_ms).into(), now_ms.into()]);
    any.first().and_then(|row| row.bool(1)) == Some(true)
}

/// The first candidates from `start` on, at least a window of them if there are as many; `are_all` tells that the caller
/// looks nowhere else.
fn scan_from<S: Scan>(
    scan: &S,
    db: &Db,
    start: &Start,
    window: i64,
    are_all: bool,
) -> Result<Found<S::Candidate>> {
    let now_ms = scan.now_ms()?;
    let mut found = Found::nothing_until(now_ms);
    if scan.is_any_expired(db, now_ms, start.lease_end_ms) {
        let arguments = [scan.arguments(now_ms, window).as_slice(), &[start.lease_end_ms.into()]].concat();
        found.add_expired(rows_of(scan, &db.query(scan.statements().expired, &arguments)));
    }
    let are_first = are_all && found.rows.is_empty();
    let ready = scan.ready(db, now_ms, window, start.ready, are_first);
    found.add_ready(rows_of(scan, &ready), ready.len() as i64 >= window);
    Ok(found)
}

/// Candidates that are newer than their place before the memory's says.
fn newer<S: Scan>(
    scan: &S,
    db: &Db,
    before: Place,
    known_id: i64,
    window: i64,
) -> Result<Vec<Row<S::Candidate>>> {
    let own = [before.visible_at.into(), before.id.into(), known_id.into()];
    let arguments = [scan.arguments(scan.now_ms()?, window).as_slice(), &own].concat();
    Ok(rows_of(scan, &db.query(scan.statements().newer, &arguments)))
}

fn rows_of<S: Scan>(scan: &S, rows: &Rows<'_>) -> Vec<Row<S::Candidate>> {
    rows.iter().filter_map(|row| scan.row(&row)).collect()
}

fn highest_id<S: Scan>(scan: &S, db: &Db) -> Option<i64> {
    db.query(scan.statements().highest_id, &[]).first()?.int8(1)
}

/// The first candidates in the order of the claim, of unclaimed rows those from `after` on: what lies before has been
/// looked at in this call. What a repeated scan finds is not remembered: it passes over rows that the next call may take.
pub(crate) fn candidates<S: Scan>(
    scan: &S,
    db: &Db,
    remembered: &Remembered,
    window: i64,
    after: Place,
    is_repeated: bool,
) -> Result<Vec<S::Candidate>> {
    let filter = scan.filter();
    let mut head = Start { ready: after, ..Start::HEAD };
    if let Some(memory) = remembered.place_for(filter) {
        let rows = from_memory(scan, db, remembered, memory, window, after)?;
        if memory.is_empty || !rows.is_empty() {
            return Ok(in_order(rows));
        }
        // What lies before the remembered place has not been looked at.
        head = Start::HEAD;
    }
    let began = Instant::now();
    let touched_before = buffers::touched();
    // Who found nothing last time mostly finds nothing again: an idle fleet polls all day. What the walk ends at
    // counts from before it.
    let now_ms = scan.now_ms()?;
    let found = if remembered.is_idle.get() && !is_any(scan, db, now_ms) {
        Found::nothing_until(now_ms)
    } else {
        scan_from(scan, db, &head, window, true)?
    };
    let touched = buffers::touched() - touched_before;
    let is_warm = remembered.is_warm.replace(true);
    if !is_repeated {
        let is_empty = found.rows.is_empty();
        let means_little = is_empty && scan.passes_over_others();
        let beside = touched.saturating_sub(BLOCKS_PER_CANDIDATE * found.seen as u64);
        let memory = |until, newer| Memory { start: found.start, filter, until, is_empty, newer };
        remembered.is_idle.set(is_empty && !means_little);
        let times = if means_little { REMEMBERED_IN_VAIN_FOR } else { REMEMBERED_FOR };
        remembered.place.set(if !is_warm {
            None
        } else if beside > LONG_WALK_BLOCKS {
            highest_id(scan, db).map(|id| {
                let newer = Newer { known_id: id.saturating_sub(ROWS_MEANWHILE), look_at: began };
                let length = (began.elapsed() * times).min(LONGEST_MEMORY);
                memory(Instant::now() + length, Some(newer))
            })
        } else if beside > SHORT_WALK_BLOCKS && !is_empty {
            Some(memory(began + MOMENT, None))
        } else {
            None
        });
    }
    Ok(in_order(found.rows))
}

fn from_memory<S: Scan>(
    scan: &S,
    db: &Db,
    remembered: &Remembered,
    memory: Memory,
    window: i64,
    after: Place,
) -> Result<Vec<Row<S::Candidate>>> {
    let start = Start { ready: memory.start.ready.max(after), ..memory.start };
    let mut rows = scan_from(scan, db, &start, window, memory.newer.is_none())?.rows;
    let began = Instant::now();
    if let Some(Newer { known_id, look_at }) = memory.newer
        && (look_at <= began || rows.is_empty())
    {
        rows.extend(newer(scan, db, memory.start.ready, known_id, window)?);
        let look_at = Instant::now() + began.elapsed() * REMEMBERED_FOR;
        remembered.place.set(Some(Memory { newer: Some(Newer { known_id, look_at }), ..memory }));
    }
    Ok(rows)
}

fn in_order<C>(mut rows: Vec<Row<C>>) -> Vec<C> {
    rows.sort_by_key(|row| row.place);
    rows.into_iter().map(|row| row.candidate).collect()
}
