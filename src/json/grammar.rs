//! The grammar of the JSON that is certain.

use super::{escape, scan};
use std::ops::Range;

/// Deeper nesting is left to PostgreSQL, whose limit is that of its stack.
const MAX_DEPTH: usize = 64;
/// Longer numbers are left to PostgreSQL, which may find them out of range for `numeric`.
const MAX_DIGITS: usize = 100;

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// A string that stands for its own bytes.
    Plain,
    /// A string with escapes, all of them simple.
    Escaped,
    /// A number without exponent.
    Number,
    False,
    True,
    Null,
}

/// A value with parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Array,
    Object,
}

/// What hears of the parts of a text, in order. Each may answer `None`: the text is in doubt.
pub(super) trait Listener {
    /// What tells the end of a container which beginning is its own.
    type Opened;

    /// A value without parts, or the key of a member; where it stands in the text, a string
    /// without its quotes.
    fn scalar(&mut self, scalar: Scalar, place: Range<usize>, is_key: bool) -> Option<()>;

    fn open(&mut self) -> Option<Self::Opened>;

    /// The container is over; `count` are its elements or members.
    fn close(&mut self, opened: Self::Opened, container: Container, count: usize) -> Option<()>;
}

/// Reads `text` as one value. `None`: in doubt.
pub(super) fn read(text: &[u8], listener: &mut impl Listener) -> Option<()> {
    let mut reader = Reader { text, at: 0, listener };
    reader.blanks();
    reader.value(0)?;
    reader.blanks();
    (reader.at == text.len()).then_some(())
}

struct Reader<'t, 'l, L> {
    text: &'t [u8],
    at: usize,
    listener: &'l mut L,
}

impl<L: Listener> Reader<'_, '_, L> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'"' => self.string(false),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.word(b"true", Scalar::True),
            b'f' => self.word(b"false", Scalar::False),
            b'n' => self.word(b"null", Scalar::Null),
            _ => self.number(),
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        let opened = self.listener.open()?;
        let mut count = 0;
        if !self.is_empty(b']') {
            loop {
                self.value(depth + 1)?;
                count += 1;
                if self.is_last(b']')? {
                    break;
                }
            }
        }
        self.listener.close(opened, Container::Array, count)
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let opened = self.listener.open()?;
        let mut count = 0;
        if !self.is_empty(b'}') {
            loop {
                self.string(true)?;
                self.blanks();
                self.byte(b':')?;
                self.blanks();
                self.value(depth + 1)?;
                count += 1;
                if self.is_last(b'}')? {
                    break;
                }
            }
        }
        self.listener.close(opened, Container::Object, count)
    }

    /// Goes past the opening bracket and, if there is nothing in the container, the closing one.
    fn is_empty(&mut self, closing: u8) -> bool {
        self.at += 1;
        self.blanks();
        self.byte(closing).is_some()
    }

    /// Goes past the comma or the bracket behind a part, and up to what follows.
    fn is_last(&mut self, closing: u8) -> Option<bool> {
        self.blanks();
        if self.byte(b',').is_some() {
            self.blanks();
            return Some(false);
        }
        self.byte(closing).map(|()| true)
    }

    fn string(&mut self, is_key: bool) -> Option<()> {
        self.byte(b'"')?;
        let start = self.at;
        let mut scalar = Scalar::Plain;
        loop {
            self.at += scan::plain_bytes(&self.text[self.at..])?;
            match self.text[self.at] {
                b'"' => break,
                b'\\' => {
                    scalar = Scalar::Escaped;
                    let (_, length) = escape::simple(&self.text[self.at..])?;
                    self.at += length;
                }
                _ => return None,
            }
        }
        let place = start..self.at;
        self.at += 1;
        self.listener.scalar(scalar, place, is_key)
    }

    /// A number without exponent; anything that is none is in doubt too.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let _ = self.byte(b'-');
        let leading_zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && leading_zero {
            return None;
        }
        if self.byte(b'.').is_some() {
            self.digits()?;
        }
        match self.peek() {
            None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') => {
                self.listener.scalar(Scalar::Number, start..self.at, false)
            }
            Some(_) => None,
        }
    }

    fn digits(&mut self) -> Option<usize> {
        let count = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (1..=MAX_DIGITS).contains(&count).then_some(count)
    }

    fn word(&mut self, word: &[u8], scalar: Scalar) -> Option<()> {
        let start = self.at;
        if !self.text[start..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        // `nullx` is for PostgreSQL to name.
        match self.peek() {
            Some(byte) if byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_' => None,
            _ => self.listener.scalar(scalar, start..self.at, false),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }
}
