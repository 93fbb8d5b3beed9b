//! Who is there and what there is to do: the sizes at which the model is checked.

use crate::state::{InstanceId, Moment};

/// Ticks for which a claim holds.
pub const LEASE: Moment = 2;
/// Ticks for which a renewal asks.
pub const EXTENSION: Moment = 2;
/// Ticks for which a message that was abandoned with a delay is not visible.
pub const DELAY: Moment = 1;
/// Ticks for which a statement that has its clock can go on, or wait for a row.
pub const LONGEST_STATEMENT: Moment = 1;

/// A configuration of the model.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    pub instances: usize,
    pub messages: &'static [NewMessage],
    pub sessions: &'static [Member],
}

#[derive(Clone, Copy, Debug)]
pub struct NewMessage {
    pub instance: InstanceId,
    pub visible_at: Moment,
    /// Comes at any time, in a transaction that is rolled back or not. Others are there before.
    pub is_late: bool,
}

/// A session, with the clock of its client and what it calls.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// How far the clock is ahead.
    pub clock: Moment,
    /// All of these again and again, in any order.
    pub calls: &'static [Kind],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Fetch,
    /// A fetch for a client that cannot be sent what the messages say.
    FetchInVain,
    Ack,
    Abandon,
    AbandonWithDelay,
    Renew,
    Delete,
    DeleteAll,
    Steal,
}

const READY: NewMessage = NewMessage { instance: 0, visible_at: 0, is_late: false };
const TIMER: NewMessage = NewMessage { instance: 0, visible_at: 1, is_late: false };
const LATE: NewMessage = NewMessage { instance: 0, visible_at: 0, is_late: true };
const OF_OTHER_INSTANCE: NewMessage = NewMessage { instance: 1, visible_at: 0, is_late: false };

const EVERY_CALL: &[Kind] = &[Kind::Fetch, Kind::Ack, Kind::Abandon, Kind::AbandonWithDelay, Kind::Renew];

pub const TWO_DISPATCHERS: Fleet = Fleet {
    instances: 1,
    messages: &[READY, TIMER, LATE],
    sessions: &[Member { clock: 0, calls: EVERY_CALL }, Member { clock: 1, calls: EVERY_CALL }],
};

/// The same, with a message that one of the clocks does not see at first.
pub const PAIR_WITH_TIMER: Fleet = Fleet { messages: &[TIMER, LATE], ..TWO_DISPATCHERS };

/// The same, with less to do.
pub const PAIR: Fleet = Fleet { messages: &[READY, LATE], ..TWO_DISPATCHERS };

pub const THREE_DISPATCHERS: Fleet = Fleet {
    instances: 1,
    messages: &[READY, LATE],
    sessions: &[
        Member { clock: 0, calls: EVERY_CALL },
        Member { clock: 1, calls: &[Kind::Fetch, Kind::Ack, Kind::Renew] },
        Member { clock: -1, calls: &[Kind::Fetch, Kind::Ack] },
    ],
};

pub const TWO_INSTANCES: Fleet = Fleet {
    instances: 2,
    messages: &[READY, OF_OTHER_INSTANCE, LATE],
    sessions: &[
        Member { clock: 0, calls: &[Kind::Fetch, Kind::Ack, Kind::Abandon] },
        Member { clock: 1, calls: &[Kind::Fetch, Kind::Ack, Kind::Renew] },
    ],
};

pub const DELETIONS: Fleet = Fleet {
    instances: 1,
    messages: &[READY, LATE],
    sessions: &[
        Member { clock: 0, calls: EVERY_CALL },
        Member { clock: 1, calls: EVERY_CALL },
        Member { clock: 0, calls: &[Kind::Delete] },
    ],
};

pub const DELETIONS_OF_TWO: Fleet = Fleet {
    instances: 2,
    messages: &[READY, OF_OTHER_INSTANCE],
    sessions: &[
        Member { clock: 0, calls: &[Kind::Fetch, Kind::Ack] },
        Member { clock: 0, calls: &[Kind::DeleteAll] },
        Member { clock: 0, calls: &[Kind::DeleteAll] },
    ],
};

pub const FETCHES_IN_VAIN: Fleet = Fleet {
    instances: 1,
    messages: &[READY, LATE],
    sessions: &[
        Member { clock: 0, calls: EVERY_CALL },
        Member { clock: 0, calls: &[Kind::Fetch, Kind::Ack] },
        Member { clock: 1, calls: &[Kind::FetchInVain] },
    ],
};

pub const STRANGER: Fleet = Fleet {
    instances: 1,
    messages: &[READY, LATE],
    sessions: &[
        Member { clock: 0, calls: EVERY_CALL },
        Member { clock: 0, calls: &[Kind::Fetch] },
        Member { clock: 1, calls: &[Kind::Steal] },
    ],
};

pub const STRANGER_AND_DELETIONS: Fleet = Fleet {
    instances: 1,
    messages: &[READY, LATE],
    sessions: &[
        Member { clock: 0, calls: &[Kind::Fetch, Kind::Ack] },
        Member { clock: 0, calls: &[Kind::Delete] },
        Member { clock: 1, calls: &[Kind::Steal] },
    ],
};
