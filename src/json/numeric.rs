//! A number as PostgreSQL's `numeric` holds it.
//!
//! The short form of numeric.c, with a varlena header of four bytes: sixteen bits with sign, count of
//! decimals and weight, then digits to the base 10,000 without zeros at either end.

use super::layout::{VARLENA_HEADER, varlena_header};

/// The short form has six bits for the count of decimals.
const MAX_DECIMALS: usize = 63;
const GROUP: usize = 4;

const SHORT: u16 = 0x8000;
const NEGATIVE: u16 = 0x2000;
const DECIMALS_SHIFT: u32 = 7;
const WEIGHT_MASK: u16 = 0x7f;

/// Appends the varlena of a number that the grammar has read. `None`: in doubt.
pub(super) fn append(number: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (negative, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (whole, decimals) = match digits.iter().position(|&byte| byte == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    if decimals.len() > MAX_DECIMALS {
        return None;
    }
    let start = out.len();
    let header = VARLENA_HEADER + 2;
    out.resize(start + header, 0);

    // The first group ends at the point: the weight is how many groups of whole digits follow it.
    let mut weight = whole.len().div_ceil(GROUP) as i16 - 1;
    let (first, rest) = whole.split_at(whole.len() - (weight as usize) * GROUP);
    for group in [first].into_iter().chain(rest.chunks(GROUP)) {
        let digit = value(group);
        if digit == 0 && out.len() == start + header {
            weight -= 1;
        } else {
            out.extend_from_slice(&digit.to_ne_bytes());
        }
    }
    for group in decimals.chunks(GROUP) {
        let digit = value(group) * 10u16.pow((GROUP - group.len()) as u32);
        if digit == 0 && out.len() == start + header {
            weight -= 1;
        } else {
            out.extend_from_slice(&digit.to_ne_bytes());
        }
    }
    while out.len() > start + header && out.ends_with(&[0, 0]) {
        out.truncate(out.len() - 2);
    }

    let is_zero = out.len() == start + header;
    let sign = if negative && !is_zero { NEGATIVE } else { 0 };
    let weight = if is_zero { 0 } else { weight as u16 & WEIGHT_MASK };
    let short = SHORT | sign | (decimals.len() as u16) << DECIMALS_SHIFT | weight;
    let length = out.len() - start;
    out[start..start + VARLENA_HEADER].copy_from_slice(&varlena_header(length));
    out[start + VARLENA_HEADER..start + header].copy_from_slice(&short.to_ne_bytes());
    Some(())
}

fn value(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::{append, varlena_header};

    /// The sixteen bits and the digits of a number.
    fn parts(number: &str) -> Option<(u16, Vec<u16>)> {
        let mut out = Vec::new();
        append(number.as_bytes(), &mut out)?;
        assert_eq!(out[..4], varlena_header(out.len()), "{number}");
        let words: Vec<u16> =
            out[4..].chunks(2).map(|word| u16::from_ne_bytes(word.try_into().expect("two bytes"))).collect();
        Some((words[0], words[1..].to_vec()))
    }

    #[test]
    fn digits_are_to_the_base_ten_thousand() {
        for (number, short, digits) in [
            ("0", 0x8000, vec![]),
            ("-0", 0x8000, vec![]),
            ("0.00", 0x8100, vec![]),
            ("-0.0", 0x8080, vec![]),
            ("1", 0x8000, vec![1]),
            ("-1", 0xa000, vec![1]),
            ("10000", 0x8001, vec![1]),
            ("12345678", 0x8001, vec![1234, 5678]),
            ("1700000000000", 0x8003, vec![1, 7000]),
            ("1.5", 0x8080, vec![1, 5000]),
            ("-2.50", 0xa100, vec![2, 5000]),
            ("0.001", 0x81ff, vec![10]),
            ("0.00001", 0x82fe, vec![1000]),
            ("10000.00001", 0x8281, vec![1, 0, 0, 1000]),
        ] {
            assert_eq!(parts(number), Some((short, digits)), "{number}");
        }
    }

    #[test]
    fn more_decimals_than_the_short_form_holds_are_in_doubt() {
        assert!(parts(&format!("0.{}", "1".repeat(63))).is_some());
        assert!(parts(&format!("0.{}", "1".repeat(64))).is_none());
    }
}
