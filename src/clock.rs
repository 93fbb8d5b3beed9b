//! Time as a call sees it: the caller's, moved on by what the call has taken so far.
//!
//! The caller's epoch is the only one. The server adds a duration, read on a monotonic clock, so
//! that a step of its wall clock changes nothing; and a lease is always counted from the moment
//! when it is written, however long the call has waited before.

use crate::error::{Error, Result};
use crate::pg::server_clock::{self, POSTGRES_EPOCH_US};
use crate::pg::values::Timestamptz;
use crate::settings;
use std::time::{Duration, Instant};

/// First and last microsecond of `timestamptz` (datatype/timestamp.h: `MIN_TIMESTAMP`, `END_TIMESTAMP`).
const MIN_TIMESTAMP_US: i64 = -211_813_488_000_000_000;
const END_TIMESTAMP_US: i64 = 9_223_371_331_200_000_000;

/// The clock of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    caller_ms: i64,
    started: Instant,
}

impl Clock {
    /// Starts at `caller_ms`, milliseconds of the Unix epoch. To be made first thing in a call.
    pub(crate) fn start(caller_ms: i64) -> Self {
        Clock { caller_ms, started: Instant::now() }
    }

    /// Milliseconds of the Unix epoch by the caller's clock, now.
    pub(crate) fn now_ms(&self) -> Result<i64> {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.caller_ms.checked_add(elapsed).ok_or(Error::NumberOutOfRange("p_now_ms"))
    }

    /// How long it is until `end_ms`; `None` from then on.
    pub(crate) fn left_until(&self, end_ms: i64) -> Result<Option<Duration>> {
        let now_ms = self.now_ms()?;
        let left_ms =
            u64::try_from(i128::from(end_ms) - i128::from(now_ms)).ok().filter(|&left_ms| left_ms > 0);
        // A century is as good as for ever, and Instant can hold it.
        Ok(left_ms.map(|left_ms| Duration::from_millis(left_ms).min(Duration::from_secs(100 * 365 * 86_400))))
    }

    /// Where a lease that is written now begins.
    pub(crate) fn lease_start_ms(&self) -> Result<i64> {
        let now = self.now_ms()?;
        Ok(match settings::lease_clock() {
            settings::LeaseClock::Caller => now,
            settings::LeaseClock::Latest => now.max(server_clock::now_ms()),
        })
    }

    /// Where a lease of `length_ms` that is written now ends.
    pub(crate) fn lease_end_ms(&self, length_ms: i64) -> Result<i64> {
        self.lease_start_ms()?.checked_add(length_ms).ok_or(Error::NumberOutOfRange("the end of the lease"))
    }
}

/// Milliseconds of the Unix epoch as `timestamptz`, exact to the millisecond.
pub(crate) fn timestamptz(ms: i64) -> Result<Timestamptz> {
    // In 128 bits: the last years that timestamptz holds are beyond i64 in microseconds of the Unix epoch.
    i64::try_from(i128::from(ms) * 1000 - i128::from(POSTGRES_EPOCH_US))
        .ok()
        .filter(|us| (MIN_TIMESTAMP_US..END_TIMESTAMP_US).contains(us))
        .map(Timestamptz)
        .ok_or(Error::TimeOutOfRange(ms))
}

/// Milliseconds of the Unix epoch, rounded down; `None` for the infinities.
pub(crate) fn unix_ms(time: Timestamptz) -> Option<i64> {
    (MIN_TIMESTAMP_US..END_TIMESTAMP_US)
        .contains(&time.0)
        .then(|| time.0.div_euclid(1000) + POSTGRES_EPOCH_US / 1000)
}

/// The latest `timestamptz` that is visible at `ms`. Beyond the range of the type a caller's clock
/// sees all or nothing, as a comparison with a larger type would.
pub(crate) fn visible_until(ms: i64) -> Timestamptz {
    timestamptz(ms).unwrap_or(Timestamptz(if ms < 0 { i64::MIN } else { END_TIMESTAMP_US - 1 }))
}

/// `extend_secs` seconds in milliseconds.
pub(crate) fn seconds(extend_secs: i64) -> Result<i64> {
    extend_secs.checked_mul(1000).ok_or(Error::NumberOutOfRange("p_extend_secs"))
}

#[cfg(test)]
mod tests {
    use super::{Timestamptz, timestamptz, unix_ms};

    #[test]
    fn milliseconds_come_back_and_parts_of_one_are_rounded_down() {
        for ms in [0, -1, 1, 1_893_499_200_000, -62_135_596_800_000, 253_402_300_799_999] {
            let time = timestamptz(ms).unwrap();
            assert_eq!(unix_ms(time), Some(ms));
            assert_eq!(unix_ms(Timestamptz(time.0 + 999)), Some(ms));
            assert_eq!(unix_ms(Timestamptz(time.0 - 1)), Some(ms - 1));
        }
    }

    #[test]
    fn an_infinity_is_no_number_of_milliseconds() {
        assert_eq!(unix_ms(Timestamptz(i64::MAX)), None);
        assert_eq!(unix_ms(Timestamptz(i64::MIN)), None);
    }
}
