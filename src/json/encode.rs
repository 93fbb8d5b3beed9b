//! Texts written as jsonb: the array of them, and the values within.

use super::grammar::{Container, Scalar};
use super::layout::*;
use super::tape::{self, Kind, Token};
use super::{escape, numeric};
use std::cmp::Ordering;

/// Objects of up to this many members are sorted by insertion, as most come in few or in order.
const FEW: usize = 12;

/// What became of a text that was to be an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    Done,
    /// PostgreSQL is to be asked; nothing was added.
    InDoubt,
    /// The array would be larger than jsonb can be; nothing was added.
    Full,
}

/// Builds an array, each of whose elements is a text of its own.
pub(crate) struct ArrayEncoder {
    out: Vec<u8>,
    entries: Entries,
    tokens: Vec<Token>,
    members: Vec<u32>,
}

impl ArrayEncoder {
    /// For `count` elements of about `bytes` in all.
    pub(crate) fn new(count: usize, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(VARLENA_HEADER + 4 + (4 * count + bytes).min(MAX_BYTES));
        out.resize(VARLENA_HEADER, 0);
        let entries = begin(&mut out, IS_ARRAY, count, count);
        ArrayEncoder { out, entries, tokens: Vec::new(), members: Vec::new() }
    }

    /// Adds a text as the next element; `watch` is called now and then, and may unwind.
    pub(crate) fn push(&mut self, text: &[u8], watch: &impl Fn()) -> Push {
        let before = self.out.len();
        let Some(entry) = self.encoded(text, watch) else {
            self.out.truncate(before);
            return Push::InDoubt;
        };
        self.push_entry(entry, before)
    }

    /// Adds a jsonb that PostgreSQL has made, a whole varlena, as the next element.
    pub(crate) fn push_jsonb(&mut self, jsonb: &[u8]) -> Push {
        let root = &jsonb[VARLENA_HEADER..];
        let before = self.out.len();
        let word = |at: usize| u32::from_ne_bytes(*root[at..].first_chunk().expect("a jsonb has a header"));
        // A scalar is held as an array of one, whose data begin at a multiple of four.
        let (kind, data) =
            if word(0) & IS_SCALAR != 0 { (word(4) & KIND_MASK, &root[8..]) } else { (CONTAINER, root) };
        if kind == NUMERIC || kind == CONTAINER {
            align(&mut self.out);
        }
        self.out.extend_from_slice(data);
        match sized(kind, self.out.len() - before) {
            Some(entry) => self.push_entry(entry, before),
            None => self.full(before),
        }
    }

    fn push_entry(&mut self, entry: u32, before: usize) -> Push {
        let fits = self.out.len() - VARLENA_HEADER <= MAX_BYTES;
        if fits && self.entries.put(&mut self.out, entry).is_some() { Push::Done } else { self.full(before) }
    }

    fn full(&mut self, before: usize) -> Push {
        self.out.truncate(before);
        Push::Full
    }

    fn encoded(&mut self, text: &[u8], watch: &impl Fn()) -> Option<u32> {
        tape::read(text, &mut self.tokens, watch)?;
        self.members.clear();
        let mut encoder =
            Encoder { text, tokens: &self.tokens, members: &mut self.members, out: &mut self.out, watch };
        encoder.value(0)
    }

    /// The jsonb, a whole varlena, when `count` elements have been added.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let header = varlena_header(self.out.len());
        self.out[..VARLENA_HEADER].copy_from_slice(&header);
        self.out
    }
}

/// Writes the values of one text; each function returns the entry of what it wrote, or `None` if it
/// is in doubt.
struct Encoder<'a, W> {
    text: &'a [u8],
    tokens: &'a [Token],
    /// The keys of the objects that are being written, one object's after another's, as tokens.
    members: &'a mut Vec<u32>,
    out: &'a mut Vec<u8>,
    watch: &'a W,
}

impl<W: Fn()> Encoder<'_, W> {
    fn value(&mut self, index: usize) -> Option<u32> {
        let token = self.tokens[index];
        match token.kind() {
            Kind::Scalar(Scalar::Plain) => {
                self.out.extend_from_slice(&self.text[token.place()]);
                Some(STRING | token.size() as u32)
            }
            Kind::Scalar(Scalar::Escaped) => {
                let start = self.out.len();
                escape::append_unescaped(&self.text[token.place()], self.out);
                sized(STRING, self.out.len() - start)
            }
            Kind::Scalar(Scalar::Number) => {
                let start = self.out.len();
                align(self.out);
                numeric::append(&self.text[token.place()], self.out)?;
                sized(NUMERIC, self.out.len() - start)
            }
            Kind::Scalar(Scalar::False) => Some(FALSE),
            Kind::Scalar(Scalar::True) => Some(TRUE),
            Kind::Scalar(Scalar::Null) => Some(NULL),
            Kind::Container(Container::Array) => self.array(index),
            Kind::Container(Container::Object) => self.object(index),
        }
    }

    fn array(&mut self, index: usize) -> Option<u32> {
        let start = self.out.len();
        align(self.out);
        let count = self.tokens[index].size();
        let mut entries = begin(self.out, IS_ARRAY, count, count);
        let mut element = index + 1;
        for _ in 0..count {
            let entry = self.value(element)?;
            self.put(&mut entries, entry)?;
            element = self.behind(element);
        }
        sized(CONTAINER, self.out.len() - start)
    }

    fn object(&mut self, index: usize) -> Option<u32> {
        let start = self.out.len();
        align(self.out);
        let first = self.members.len();
        self.sorted_members(index);
        let last = self.members.len();
        let mut entries = begin(self.out, IS_OBJECT, last - first, 2 * (last - first));
        for member in first..last {
            let entry = self.value(self.members[member] as usize)?;
            self.put(&mut entries, entry)?;
        }
        for member in first..last {
            let entry = self.value(self.members[member] as usize + 1)?;
            self.put(&mut entries, entry)?;
        }
        self.members.truncate(first);
        sized(CONTAINER, self.out.len() - start)
    }

    /// Appends the keys of an object to `members`, the shorter ones first, each once: the last one
    /// written is the one that counts.
    fn sorted_members(&mut self, index: usize) {
        let (tokens, text, watch) = (self.tokens, self.text, self.watch);
        let first = self.members.len();
        let mut key = index + 1;
        for _ in 0..tokens[index].size() {
            self.members.push(key as u32);
            key = self.behind(key + 1);
        }
        let compare = |a: u32, b: u32| {
            let (a, b) = (tokens[a as usize], tokens[b as usize]);
            a.size().cmp(&b.size()).then_with(|| text[a.place()].cmp(&text[b.place()]))
        };
        let members = &mut self.members[first..];
        if members.len() <= FEW {
            for end in 1..members.len() {
                let mut at = end;
                while at > 0 && compare(members[at - 1], members[at]) == Ordering::Greater {
                    members.swap(at - 1, at);
                    at -= 1;
                }
            }
        } else {
            members.sort_unstable_by(|&a, &b| {
                watch();
                compare(a, b).then(a.cmp(&b))
            });
        }
        let mut kept = first;
        for at in first..self.members.len() {
            let member = self.members[at];
            if kept > first && compare(self.members[kept - 1], member) == Ordering::Equal {
                kept -= 1;
            }
            self.members[kept] = member;
            kept += 1;
        }
        self.members.truncate(kept);
    }

    fn put(&mut self, entries: &mut Entries, entry: u32) -> Option<()> {
        if entries.index.is_multiple_of(1024) {
            (self.watch)();
        }
        entries.put(self.out, entry)
    }

    /// The token behind a value.
    fn behind(&self, index: usize) -> usize {
        match self.tokens[index].kind() {
            Kind::Scalar(_) => index + 1,
            Kind::Container(_) => self.tokens[index].end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(texts: &[&str]) -> ArrayEncoder {
        let mut array = ArrayEncoder::new(texts.len(), 0);
        for text in texts {
            assert_eq!(array.push(text.as_bytes(), &|| ()), Push::Done, "{text}");
        }
        array
    }

    /// A jsonb of words and strings, behind the header of the varlena.
    fn jsonb(parts: &[&dyn Bytes]) -> Vec<u8> {
        let root: Vec<u8> = parts.iter().flat_map(|part| part.bytes()).collect();
        [varlena_header(4 + root.len()).as_slice(), &root].concat()
    }

    trait Bytes {
        fn bytes(&self) -> Vec<u8>;
    }

    impl Bytes for u32 {
        fn bytes(&self) -> Vec<u8> {
            self.to_ne_bytes().to_vec()
        }
    }

    impl Bytes for u16 {
        fn bytes(&self) -> Vec<u8> {
            self.to_ne_bytes().to_vec()
        }
    }

    impl Bytes for &str {
        fn bytes(&self) -> Vec<u8> {
            self.as_bytes().to_vec()
        }
    }

    fn number(length: usize) -> u32 {
        u32::from_ne_bytes(varlena_header(length))
    }

    #[test]
    fn an_array_has_entries_and_then_data() {
        let expected = jsonb(&[
            &0x4000_0005_u32,
            &0x8000_0003_u32, // the first entry has an offset
            &0x1000_0009_u32, // one byte before the number counts as its
            &0x4000_0000_u32,
            &0x3000_0000_u32,
            &0x2000_0000_u32,
            &"a\"b",
            &"\0",
            &number(8),
            &0x8000_u16,
            &7_u16,
        ]);
        assert_eq!(array(&[r#""a\"b""#, "7", "null", "true", " false "]).finish(), expected);
        assert_eq!(array(&[]).finish(), jsonb(&[&0x4000_0000_u32]));
    }

    #[test]
    fn keys_come_by_length_and_the_last_of_equal_ones_counts() {
        let expected = jsonb(&[
            &0x4000_0001_u32,
            &0xd000_0021_u32, // 4 bytes of header, 24 of entries, 5 of data
            &0x2000_0003_u32,
            &0x8000_0001_u32,
            &0x0000_0001_u32,
            &0x0000_0002_u32,
            &0x3000_0000_u32,
            &0x0000_0001_u32,
            &0x4000_0000_u32,
            &"bcaa",
            &"x",
        ]);
        assert_eq!(array(&[r#"{"aa":1, "c":"x", "b":false, "aa":null, "b":true}"#]).finish(), expected);
    }

    #[test]
    fn every_32nd_entry_has_an_offset() {
        let bytes = array(&["\"ab\""; 65]).finish();
        let entries: Vec<u32> = bytes[8..8 + 4 * 65]
            .chunks(4)
            .map(|entry| u32::from_ne_bytes(entry.try_into().expect("four bytes")))
            .collect();
        for (index, entry) in entries.into_iter().enumerate() {
            let expected = if index % 32 == 0 { 0x8000_0000 | (2 * (index as u32 + 1)) } else { 2 };
            assert_eq!(entry, expected, "{index}");
        }
    }

    #[test]
    fn a_jsonb_of_postgresql_is_taken_apart_where_it_is_a_scalar() {
        let texts = ["\"abc\"", "1.5", "[1]", "{}", "null", "true"];
        let ours = array(&texts).finish();

        let mut spliced = ArrayEncoder::new(texts.len(), 0);
        for text in texts {
            let mut one = array(&[text]).finish();
            if text.starts_with(['[', '{']) {
                one.drain(4..12); // header and entry of the array around it
            } else {
                let header = 0x5000_0001_u32; // an array that is a scalar
                one[4..8].copy_from_slice(&header.to_ne_bytes());
            }
            assert_eq!(spliced.push_jsonb(&one), Push::Done, "{text}");
        }
        assert_eq!(spliced.finish(), ours);
    }

    #[test]
    fn what_is_in_doubt_leaves_the_array_as_it_was() {
        let mut array = array(&["1"]);
        for text in [
            "[1, 2, [\"some text\", 1e5]]",
            "{\"a\":1,\"\\n\":2}",
            &format!("[7, 0.{}]", "1".repeat(64)),
            "[",
            "",
        ] {
            let before = array.out.clone();
            assert_eq!(array.push(text.as_bytes(), &|| ()), Push::InDoubt, "{text}");
            assert_eq!(array.out, before, "{text}");
        }
    }
}
