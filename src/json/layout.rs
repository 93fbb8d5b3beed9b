//! How jsonb is laid out in bytes, as PostgreSQL's `jsonb_in` writes it.
//!
//! A container is a header with the count of its parts, an entry of 28 bits of length and 4 of kind
//! for each of them, and their bytes in the same order; an object has its keys first, sorted, then
//! the values (utils/jsonb.h describes it). Numbers and containers begin at multiples of four, and
//! what that takes counts as theirs.

/// The largest size of a value: what the length in an entry can say (`JENTRY_OFFLENMASK`).
pub(crate) const MAX_BYTES: usize = 0x0fff_ffff;

pub(super) const IS_SCALAR: u32 = 0x1000_0000;
pub(super) const IS_OBJECT: u32 = 0x2000_0000;
pub(super) const IS_ARRAY: u32 = 0x4000_0000;

pub(super) const STRING: u32 = 0x0000_0000;
pub(super) const NUMERIC: u32 = 0x1000_0000;
pub(super) const FALSE: u32 = 0x2000_0000;
pub(super) const TRUE: u32 = 0x3000_0000;
pub(super) const NULL: u32 = 0x4000_0000;
pub(super) const CONTAINER: u32 = 0x5000_0000;
pub(super) const KIND_MASK: u32 = 0x7000_0000;

/// An entry with the end of the part, counted from the first, instead of its length; each 32nd is.
const HAS_OFFSET: u32 = 0x8000_0000;
const OFFSET_STRIDE: usize = 32;

/// The size of the header of a varlena.
pub(super) const VARLENA_HEADER: usize = 4;

/// The header of a varlena that is neither short nor compressed, of this length.
pub(super) fn varlena_header(length: usize) -> [u8; VARLENA_HEADER] {
    let length = length as u32;
    if cfg!(target_endian = "big") { length.to_ne_bytes() } else { (length << 2).to_ne_bytes() }
}

/// The entries of a container that is being written.
pub(super) struct Entries {
    at: usize,
    /// How many are written.
    pub(super) index: usize,
    total: usize,
}

/// Writes the header of a container of `count` parts, and room for `entries` entries.
pub(super) fn begin(out: &mut Vec<u8>, kind: u32, count: usize, entries: usize) -> Entries {
    out.extend_from_slice(&(kind | count as u32).to_ne_bytes());
    let at = out.len();
    out.resize(at + 4 * entries, 0);
    Entries { at, index: 0, total: 0 }
}

impl Entries {
    /// Writes the next entry. `None`: the parts are larger together than jsonb can say.
    pub(super) fn put(&mut self, out: &mut [u8], entry: u32) -> Option<()> {
        self.total += entry as usize & MAX_BYTES;
        if self.total > MAX_BYTES {
            return None;
        }
        let entry = if self.index.is_multiple_of(OFFSET_STRIDE) {
            entry & KIND_MASK | self.total as u32 | HAS_OFFSET
        } else {
            entry
        };
        out[self.at..self.at + 4].copy_from_slice(&entry.to_ne_bytes());
        self.at += 4;
        self.index += 1;
        Some(())
    }
}

/// The entry of a part of this size; `None`: larger than jsonb can say.
pub(super) fn sized(kind: u32, size: usize) -> Option<u32> {
    (size <= MAX_BYTES).then_some(kind | size as u32)
}

/// Where a number or a container may begin.
pub(super) fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
