//! The parts of a text, noted so that they can be written in another order.

use super::grammar::{self, Container, Listener, Scalar};
use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar(Scalar),
    Container(Container),
}

/// A value or a key. Eight bytes, since a long array of small numbers has a token for every three
/// bytes of jsonb or less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// The kind in 4 bits; in 28 the length in the text, or the number of elements or members.
    kind_and_size: u32,
    /// Where it begins in the text; of a container, the token behind its last part.
    at: u32,
}

const SIZE_BITS: u32 = 28;
const MAX_SIZE: usize = (1 << SIZE_BITS) - 1;
/// Beyond this many, PostgreSQL's parser may not have room for one container's parts.
const MAX_TOKENS: usize = 1 << 24;

impl Token {
    fn new(kind: Kind, size: usize, at: usize) -> Option<Self> {
        let kind = match kind {
            Kind::Scalar(scalar) => scalar as u32,
            Kind::Container(container) => 8 | container as u32,
        };
        let at = u32::try_from(at).ok()?;
        (size <= MAX_SIZE).then_some(Token { kind_and_size: kind << SIZE_BITS | size as u32, at })
    }

    pub(super) fn kind(self) -> Kind {
        const KINDS: [Kind; 10] = [
            Kind::Scalar(Scalar::Plain),
            Kind::Scalar(Scalar::Escaped),
            Kind::Scalar(Scalar::Number),
            Kind::Scalar(Scalar::False),
            Kind::Scalar(Scalar::True),
            Kind::Scalar(Scalar::Null),
            Kind::Scalar(Scalar::Null),
            Kind::Scalar(Scalar::Null),
            Kind::Container(Container::Array),
            Kind::Container(Container::Object),
        ];
        KINDS[(self.kind_and_size >> SIZE_BITS) as usize]
    }

    pub(super) fn size(self) -> usize {
        self.kind_and_size as usize & MAX_SIZE
    }

    /// Where in the text the scalar stands.
    pub(super) fn place(self) -> Range<usize> {
        self.at as usize..self.at as usize + self.size()
    }

    /// The token behind the last part of the container.
    pub(super) fn end(self) -> usize {
        self.at as usize
    }
}

/// Reads `text` into `tokens`; `watch` is called now and then. `None`: in doubt.
pub(super) fn read(text: &[u8], tokens: &mut Vec<Token>, watch: &impl Fn()) -> Option<()> {
    tokens.clear();
    grammar::read(text, &mut Tape { tokens, watch })
}

struct Tape<'t, W> {
    tokens: &'t mut Vec<Token>,
    watch: &'t W,
}

impl<W: Fn()> Tape<'_, W> {
    fn push(&mut self, token: Token) -> Option<()> {
        if self.tokens.len() % 4096 == 4095 {
            (self.watch)();
        }
        self.tokens.push(token);
        (self.tokens.len() < MAX_TOKENS).then_some(())
    }
}

impl<W: Fn()> Listener for Tape<'_, W> {
    /// The index of the container's token.
    type Opened = usize;

    fn scalar(&mut self, scalar: Scalar, place: Range<usize>, is_key: bool) -> Option<()> {
        // Keys are compared as they stand in the text.
        if is_key && scalar == Scalar::Escaped {
            return None;
        }
        self.push(Token::new(Kind::Scalar(scalar), place.len(), place.start)?)
    }

    fn open(&mut self) -> Option<usize> {
        let index = self.tokens.len();
        self.push(Token { kind_and_size: 0, at: 0 })?;
        Some(index)
    }

    fn close(&mut self, index: usize, container: Container, count: usize) -> Option<()> {
        self.tokens[index] = Token::new(Kind::Container(container), count, self.tokens.len())?;
        Some(())
    }
}
