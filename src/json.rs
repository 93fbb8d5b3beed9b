//! A quick look at a text: surely one JSON value that jsonb can hold, or in doubt.
//!
//! PostgreSQL's parser decides; this only spares it the texts that nobody could doubt, about ten
//! times faster. So it answers true for a subset of JSON: escapes and numbers of simple form,
//! nesting that is not deep. False means "ask PostgreSQL", never "refuse".

/// Deeper nesting is left to PostgreSQL, whose limit is that of its stack.
const MAX_DEPTH: usize = 64;
/// Longer numbers are left to PostgreSQL, which may find them out of range for `numeric`.
const MAX_DIGITS: usize = 100;
/// jsonb holds strings, and arrays and objects as a whole, of less than 256 MB.
const MAX_BYTES: usize = 64 << 20;

/// True if `text` is one JSON value for certain. Bytes over 127 count as parts of strings, as they
/// do in every encoding that a server can have.
pub(crate) fn certainly_one_value(text: &[u8]) -> bool {
    if text.len() > MAX_BYTES {
        return false;
    }
    let mut scan = Scan { rest: text };
    scan.value(0).is_some() && {
        scan.blanks();
        scan.rest.is_empty()
    }
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blanks();
        match self.rest.first()? {
            b'"' => self.string(),
            b'{' => self.members(depth),
            b'[' => self.elements(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn elements(&mut self, depth: usize) -> Option<()> {
        self.byte(b'[')?;
        self.blanks();
        if self.byte(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            self.blanks();
            if self.byte(b',').is_none() {
                return self.byte(b']');
            }
        }
    }

    fn members(&mut self, depth: usize) -> Option<()> {
        self.byte(b'{')?;
        self.blanks();
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            self.blanks();
            self.string()?;
            self.blanks();
            self.byte(b':')?;
            self.value(depth + 1)?;
            self.blanks();
            if self.byte(b',').is_none() {
                return self.byte(b'}');
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.byte(b'"')?;
        loop {
            let plain = self.rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)?;
            self.rest = &self.rest[plain..];
            match (self.rest[0], self.rest.get(1)) {
                (b'"', _) => {
                    self.rest = &self.rest[1..];
                    return Some(());
                }
                // `\u` may name a character that jsonb, or the encoding, does not have.
                (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                    self.rest = &self.rest[2..];
                }
                _ => return None,
            }
        }
    }

    /// A number without exponent; anything that is none is in doubt too.
    fn number(&mut self) -> Option<()> {
        let _ = self.byte(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole[0] == b'0' {
            return None;
        }
        if self.byte(b'.').is_some() {
            self.digits()?;
        }
        match self.rest.first() {
            None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') => Some(()),
            Some(_) => None,
        }
    }

    fn digits(&mut self) -> Option<&[u8]> {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 || count > MAX_DIGITS {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        Some(digits)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        // `nullx` is for PostgreSQL to name.
        self.rest.first().is_none_or(|b| !b.is_ascii_alphanumeric() && *b < 0x80 && *b != b'_').then_some(())
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn blanks(&mut self) {
        let count = self.rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.rest = &self.rest[count..];
    }
}

#[cfg(test)]
mod tests {
    use super::certainly_one_value;

    #[test]
    fn plain_values_are_certain() {
        for text in [
            "1",
            "-0",
            "0.10",
            " [1, 2] ",
            "{}",
            "[]",
            "null",
            "\"\"",
            "\"a\\n\"",
            "{\"a\":[true,{\"b\":null}]}",
            "\"caf\u{e9}\"",
            "12345678901234567890123",
            "{ \"a\" : 1 , \"b\" : -2.5 }",
        ] {
            assert!(certainly_one_value(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_no_single_value_is_in_doubt() {
        for text in [
            "",
            " ",
            "not json",
            "1,2",
            "1 2",
            "[1",
            "1]",
            "{\"a\"}",
            "{\"a\":}",
            "[1,]",
            "{,}",
            "\"a",
            "a\"",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "nullx",
            "true1",
            "[1 2]",
            "\"\u{1}\"",
            "{1:2}",
            "'a'",
        ] {
            assert!(!certainly_one_value(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_jsonb_may_refuse_is_in_doubt() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let long = "9".repeat(200);
        for text in ["\"\\u0000\"", "\"\\ud800\"", "\"\\u00e9\"", "1e400", "1e999999", &deep, &long] {
            assert!(!certainly_one_value(text.as_bytes()), "{text}");
        }
    }
}
