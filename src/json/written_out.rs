//! How long the numbers of a text become when PostgreSQL writes them out.
//!
//! jsonb keeps a number as `numeric`, and its text form has all the digits: `1e131071` comes out as 131,072 of
//! them. So a text of some kilobytes can come to more than the gigabyte that a value may have, and fails whoever
//! is sent it, after the function that returns it has ended.

use super::scan::plain_bytes;

/// What the exponents of one text may add to it: 64 times its length, so that every number that a client can hold as a
/// double is accepted (`1e308` becomes 60 times as long), and this much in any case.
const FREE_DIGITS: usize = 4096;
const DIGITS_PER_BYTE: usize = 64;
/// And no more than this.
const MAX_DIGITS: usize = 64 << 20;
/// What those of all texts of one value may add.
pub(crate) const MAX_DIGITS_OF_ALL: usize = 256 << 20;

/// No exponent of a `numeric` is as large as this.
const BEYOND_NUMERIC: usize = 1_000_000;

/// How many digits the exponents in a text add at most.
pub(crate) fn digits_of_exponents(text: &[u8]) -> usize {
    let mut digits = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = end_of_string(text, at + 1),
            b'e' | b'E' if at > 0 && text[at - 1].is_ascii_digit() => {
                at += 1;
                at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
                let exponent = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
                let (length, value) = exponent.fold((0, 0_usize), |(length, value), digit| {
                    (length + 1, (value * 10 + usize::from(digit - b'0')).min(BEYOND_NUMERIC))
                });
                at += length;
                digits = digits.saturating_add(value);
            }
            _ => at += 1,
        }
    }
    digits
}

/// Whether so many digits are too many for a text of this length.
pub(crate) fn are_too_many(digits: usize, length: usize) -> bool {
    digits > (length.saturating_mul(DIGITS_PER_BYTE).saturating_add(FREE_DIGITS)).min(MAX_DIGITS)
}

/// Behind the quote that ends the string whose first byte is at `at`.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(plain) = plain_bytes(&text[at.min(text.len())..]) {
        at += plain;
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{are_too_many, digits_of_exponents};

    #[test]
    fn exponents_count_and_what_looks_like_them_in_strings_does_not() {
        for (text, digits) in [
            ("1", 0),
            ("true", 0),
            ("1e5", 5),
            ("[1E+5, -2.5e-7]", 12),
            ("{\"1e9\": 1e3}", 3),
            ("\"a\\\"1e9\\\\\"", 0),
            ("[\"\\\\\", 1e2]", 2),
            ("1e99999999999999999999", 1_000_000),
            ("\"1e9", 0),
            ("\"\\", 0),
            ("1e", 0),
            ("e5", 0),
        ] {
            assert_eq!(digits_of_exponents(text.as_bytes()), digits, "{text}");
        }
    }

    #[test]
    fn doubles_are_never_too_many() {
        for number in ["1e308", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308"] {
            for count in [1, 10, 100_000] {
                let text = format!("[{}]", vec![number; count].join(","));
                assert!(
                    !are_too_many(digits_of_exponents(text.as_bytes()), text.len()),
                    "{count} times {number}"
                );
            }
        }
        let text = format!("[{}]", vec!["1e131071"; 100].join(","));
        assert!(are_too_many(digits_of_exponents(text.as_bytes()), text.len()));
    }
}
