//! Row ids: milliseconds when a request ended << 12 | sequence.
//!
//! They grow with every record of a process and start above what the database holds, even when the clock was set back, so
//! that pages by cursor are stable. An id is never smaller than the arrival of its request << 12. They pass 2^53, beyond
//! which JavaScript rounds, in September 2039.

use switchyard_engine::record::RequestRecord;

const SEQUENCE_BITS: u32 = 12;
/// The last millisecond whose ids stay below 2^53.
const LAST_MS: i64 = (1 << (53 - SEQUENCE_BITS)) - 1;

/// The smallest id that a request which arrived at this instant may have.
pub(crate) fn first_id_of(arrived_at_ms: i64) -> i64 {
    arrived_at_ms.clamp(0, LAST_MS) << SEQUENCE_BITS
}

/// Ids of one moment (see the table `key_moments`) agree above these bits: 256 ms.
pub(crate) const MOMENT_BITS: u32 = SEQUENCE_BITS + 8;

#[derive(Debug, Default)]
pub(super) struct Ids {
    last: i64,
}

impl Ids {
    pub(super) fn next(&mut self, record: &RequestRecord) -> i64 {
        let duration_ms = i64::try_from(record.duration_us / 1000).unwrap_or(i64::MAX);
        let ended_ms = record.arrived_at_ms.saturating_add(duration_ms);
        self.last = (self.last + 1).max(first_id_of(ended_ms));
        self.last
    }

    /// From now on ids are greater than `id`.
    pub(super) fn raise(&mut self, id: i64) {
        self.last = self.last.max(id);
    }
}
