//! JSON documents by chance: all that an encoder can get wrong, and texts that are nearly JSON.

/// A small generator, so that a failure can be repeated.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    /// True once in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one_of<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }
}

/// How much of a document our encoder need not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What every writer of JSON makes.
    Plain,
    /// Here and there what is left to PostgreSQL, some of which it refuses.
    Odd,
}

/// One JSON document.
pub(super) fn document(random: &mut Random, kind: Kind) -> String {
    let spaced = random.once_in(3);
    let mut writer = Writer { random, kind, spaced, out: String::new() };
    writer.blank();
    writer.value(0);
    writer.blank();
    writer.out
}

/// A document with a few bytes changed, added or taken away: mostly no JSON any more. It stays
/// valid UTF-8, as a text in a database would.
pub(super) fn damaged(random: &mut Random) -> String {
    const BYTES: &[u8] = b"\"\\{}[]:,.-+eE019 \n\ttfnu/\x01\x1f\x7fa";
    let mut characters: Vec<char> = document(random, Kind::Odd).chars().collect();
    for _ in 0..1 + random.below(3) {
        let at = random.below(characters.len() + 1);
        let new = char::from(BYTES[random.below(BYTES.len())]);
        match random.below(4) {
            0 if at < characters.len() => drop(characters.remove(at)),
            1 => characters.insert(at, new),
            2 => characters.truncate(at.max(1)),
            _ if at < characters.len() => characters[at] = new,
            _ => characters.push(new),
        }
    }
    characters.into_iter().collect()
}

struct Writer<'r> {
    random: &'r mut Random,
    kind: Kind,
    spaced: bool,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, depth: usize) {
        if self.kind == Kind::Odd && self.random.once_in(200) {
            return self.nested();
        }
        // Documents that are objects or arrays are what matters; deep inside, they must end.
        match self.random.below(if depth > 5 { 6 } else { 10 - depth.min(2) + 4 * usize::from(depth == 0) }) {
            0 | 1 => self.string(),
            2 | 3 => self.number(),
            4 => self.out.push_str(self.random.one_of(&["true", "false", "null"])),
            5 => self.out.push_str(self.random.one_of(&["{}", "[]", "\"\"", "[[]]", "[{}]", "0"])),
            6 | 7 => self.array(depth),
            _ => self.object(depth),
        }
    }

    /// Arrays within arrays, more than our parser cares to follow.
    fn nested(&mut self) {
        let depth = 60 + self.random.below(20);
        self.out.push_str(&"[".repeat(depth));
        self.number();
        self.out.push_str(&"]".repeat(depth));
    }

    /// Mostly few; at times about as many as there are between two entries with an offset.
    fn count(&mut self, depth: usize) -> usize {
        match self.random.below(60 << (2 * depth.min(4))) {
            0 => 30 + self.random.below(5),
            1 => 62 + self.random.below(5),
            2 => 14 + self.random.below(4),
            3 => 10 + self.random.below(4),
            4 => 94 + self.random.below(40),
            _ => self.random.below(6),
        }
    }

    fn array(&mut self, depth: usize) {
        self.parts(depth, '[', ']', |writer| writer.value(depth + 1));
    }

    fn object(&mut self, depth: usize) {
        let many_equal = self.random.once_in(4);
        self.parts(depth, '{', '}', |writer| {
            writer.key(many_equal);
            writer.blank();
            writer.out.push(':');
            writer.blank();
            writer.value(depth + 1);
        });
    }

    fn parts(&mut self, depth: usize, opening: char, closing: char, part: impl Fn(&mut Self)) {
        self.out.push(opening);
        self.blank();
        for index in 0..self.count(depth) {
            if index > 0 {
                self.out.push(',');
                self.blank();
            }
            part(self);
            self.blank();
        }
        self.out.push(closing);
    }

    /// Keys that are the same, or of one length, or one the beginning of another.
    fn key(&mut self, many_equal: bool) {
        if self.kind == Kind::Odd && self.random.once_in(30) {
            return self.string();
        }
        const KEYS: &[&str] =
            &["", "a", "b", "ab", "ba", "aa", "event_id", "instance", "kind", "caf\u{e9}", "\u{1F600}"];
        let key = self.random.one_of(KEYS);
        self.out.push('"');
        self.out.push_str(key);
        if !many_equal {
            self.out.push_str(&self.random.below(1000).to_string());
        }
        self.out.push('"');
    }

    fn string(&mut self) {
        const PIECES: &[&str] = &[
            "a",
            "bc",
            "some text ",
            "0123456789",
            " ",
            "'",
            "{[,:]}",
            "\u{7f}",
            "\u{e9}",
            "\u{20ac}",
            "\u{1F600}",
            "\\\"",
            "\\\\",
            "\\/",
            "\\b",
            "\\f",
            "\\n",
            "\\r",
            "\\t",
            "\\u001b",
            "\\u0041",
        ];
        const ODD: &[&str] = &[
            "\\u00e9",
            "\\u20AC",
            "\\ud83d\\ude00",
            "\\ud800",
            "\\udc00",
            "\\u0000",
            "\\ud83d\\u0041",
            "\\u007f",
        ];
        let length = match self.random.below(40) {
            0 => self.random.below(100),
            1 => self.random.below(10),
            _ => self.random.below(4),
        };
        self.out.push('"');
        for _ in 0..length {
            let odd = self.kind == Kind::Odd && self.random.once_in(30);
            self.out.push_str(self.random.one_of(if odd { ODD } else { PIECES }));
        }
        self.out.push('"');
    }

    fn number(&mut self) {
        if self.random.once_in(3) {
            self.out.push('-');
        }
        match self.random.below(12) {
            0 => self.out.push('0'),
            1 => self.out.push_str(self.random.one_of(&[
                "9999",
                "10000",
                "10001",
                "99990000",
                "100000000",
                "1000",
            ])),
            2 => self.digits(90),
            _ => self.digits(15),
        }
        if self.random.once_in(3) {
            self.out.push('.');
            match self.random.below(6) {
                0 => self.out.push_str(&"0".repeat(1 + self.random.below(20))),
                1 => {
                    self.out.push_str(&"0".repeat(self.random.below(10)));
                    self.digits(10);
                }
                2 => {
                    self.digits(6);
                    self.out.push_str(&"0".repeat(1 + self.random.below(10)));
                }
                _ => self.digits(if self.kind == Kind::Odd { 70 } else { 20 }),
            }
        }
        if self.kind == Kind::Odd && self.random.once_in(12) {
            let exponent =
                self.random.one_of(&["e5", "E-7", "e+20", "e0", "e-40", "e400", "e-100", "e999999"]);
            self.out.push_str(exponent);
        }
    }

    /// Digits of which the first is none.
    fn digits(&mut self, at_most: usize) {
        self.out.push(char::from(b'1' + self.random.below(9) as u8));
        for _ in 0..self.random.below(at_most) {
            let digit = if self.random.once_in(3) { 0 } else { self.random.below(10) as u8 };
            self.out.push(char::from(b'0' + digit));
        }
    }

    fn blank(&mut self) {
        if self.spaced && self.random.once_in(2) {
            self.out.push_str(self.random.one_of(&[" ", "\n", "\t", "\r\n", "    "]));
        }
    }
}
