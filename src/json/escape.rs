//! Escapes in strings that mean the same in every encoding.

/// What the escape at the start of `text`, a backslash, stands for, and how long it is. `None`: in
/// doubt. `\u` may name a character that jsonb, or the encoding, does not have; only ASCII is sure,
/// which is what most writers of JSON use it for.
pub(super) fn simple(text: &[u8]) -> Option<(u8, usize)> {
    let short = match text.get(1)? {
        b'"' => b'"',
        b'\\' => b'\\',
        b'/' => b'/',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let [b'0', b'0', high, low] = *text.get(2..6)?.first_chunk::<4>()? else { return None };
            let code = hex(high)? << 4 | hex(low)?;
            return (0x01..=0x7f).contains(&code).then_some((code, 6));
        }
        _ => return None,
    };
    Some((short, 2))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Appends the bytes that a string stands for, whose escapes are all simple.
pub(super) fn append_unescaped(string: &[u8], out: &mut Vec<u8>) {
    let mut rest = string;
    while let Some(plain) = super::scan::plain_bytes(rest) {
        out.extend_from_slice(&rest[..plain]);
        let (byte, length) = simple(&rest[plain..]).expect("the grammar has seen simple escapes only");
        out.push(byte);
        rest = &rest[plain + length..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::{append_unescaped, simple};

    #[test]
    fn escapes_stand_for_one_ascii_byte() {
        for (text, byte, length) in [
            (r#"\""#, b'"', 2),
            (r"\\n", b'\\', 2),
            (r"\/", b'/', 2),
            (r"\b", 8, 2),
            (r"\f", 12, 2),
            (r"\n1", b'\n', 2),
            (r"\r", b'\r', 2),
            (r"\t", b'\t', 2),
            (r"\u0001", 1, 6),
            (r"\u001b[0m", 0x1b, 6),
            (r"\u007F0", 0x7f, 6),
        ] {
            assert_eq!(simple(text.as_bytes()), Some((byte, length)), "{text}");
        }
    }

    #[test]
    fn other_escapes_are_in_doubt() {
        for text in [
            r"\", r"\x", r"\u", r"\u00", r"\u001", r"\u0000", r"\u0080", r"\u00e9", r"\u0100", r"\ud800",
            r"\u00g1", r"\u00+1", r"\U0041", r"\'", r"\u004\",
        ] {
            assert_eq!(simple(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_string_is_unescaped() {
        let mut out = b"before ".to_vec();
        append_unescaped("\\u001b[1m\\\"caf\u{e9}\\\"\\\\\\n".as_bytes(), &mut out);
        assert_eq!(out, "before \u{1b}[1m\"caf\u{e9}\"\\\n".as_bytes());
    }
}
