//! What protects the protocol. The model can be run without any of it.

/// A part of the implementation, or of what it relies on, that can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// claim_instance: takes the key before it looks.
    KeyInClaim,
    /// claim_instance: only tries the key.
    KeyOnlyTried,
    /// claim_instance: looks with a snapshot taken after the key.
    FreshSnapshot,
    /// claim_instance: passes over an instance without messages.
    AtLeastOneMessage,
    /// claim_instance, LEASE_END: passes over an instance with a live lease.
    NoLiveLease,
    /// claim_instance, LOCK_MESSAGES: SKIP LOCKED.
    SkipLockedMessages,
    /// claim_instance: passes over an instance if some of its messages were skipped.
    AllMessagesLocked,
    /// claim_instance, LEASE_AGAIN: there is such a statement.
    Takeover,
    /// claim_instance, LEASE_AGAIN: only over a lease that has ended.
    OnlyOverExpiredLease,
    /// claim_instance, LEASE_AGAIN: SKIP LOCKED.
    SkipLockedLease,
    /// probe: no insert while somebody else is inserting the lock row.
    Probe,
    /// Nobody inserts the lock row between the probe and the insert: what the probe relies on.
    NothingAfterProbe,
    /// ack_turn: takes the key.
    KeyInAck,
    /// ack_turn, TAKE_LEASE: only the lock row of this token.
    TokenCheckedAgain,
    /// ack_turn, TAKE_LEASE: only one that is live.
    LeaseCheckedAgain,
    /// ack_turn: deletes the lock row before anything else, and goes on only if there was one.
    LockRowFirst,
    /// ack_turn, CONSUME_MESSAGES: those of the token, not all of the instance.
    ConsumedByToken,
    /// commit_check: no commit after the lease.
    CommitCheck,
    /// instance_lease: abandon takes the key.
    KeyInAbandon,
    /// instance_lease: renew takes the key.
    KeyInRenew,
    /// instance_lease, LOCK: the clock is read when the lock row is held.
    ClockReadUnderRowLock,
    /// instance_lease, RENEW: only a lease that is live.
    OnlyLiveLeaseRenewed,
    /// instance_lease, RENEW: GREATEST.
    NeverEarlier,
    /// deletion: takes the keys.
    KeyInDelete,
    /// deletion: takes them in order.
    KeysInOrder,
    /// deletion: deletes lock rows in a statement of its own, after the messages.
    LeasesDeletedLast,
}
