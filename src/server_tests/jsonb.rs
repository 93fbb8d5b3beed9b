//! Our jsonb is PostgreSQL's, byte for byte; and what PostgreSQL refuses is never taken for JSON.

#[pgrx::pg_schema]
mod tests {
    use super::super::documents::{self, Kind, Random};
    use crate::json::{ArrayEncoder, Push, certainly_one_value};
    use crate::pg::json::{self, Form, Unfit};
    use crate::pg::values::JsonbBuf;
    use pgrx::prelude::*;

    /// How many documents each test goes through; more with this variable when it is compiled.
    fn documents() -> usize {
        option_env!("DUROXIDE_QUEUE_JSON_DOCUMENTS").map_or(100_000, |count| count.parse().expect("a number"))
    }

    /// An array of one text, by our encoder alone.
    fn encoded(text: &str) -> Option<JsonbBuf> {
        let mut array = ArrayEncoder::new(1, text.len());
        match array.push(text.as_bytes(), &|| ()) {
            Push::Done => Some(JsonbBuf::of_bytes(array.finish())),
            Push::InDoubt => None,
            Push::Full => panic!("{} bytes do not fit", text.len()),
        }
    }

    fn by_postgresql(text: &str) -> JsonbBuf {
        json::parsed(text.as_bytes(), Form::Jsonb).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))
    }

    fn assert_same(ours: &JsonbBuf, theirs: &JsonbBuf, text: &str) {
        assert!(ours == theirs, "{text:?}\nours:   {:02x?}\ntheirs: {:02x?}", ours.bytes(), theirs.bytes());
    }

    /// Encodes a text where that is without doubt, and compares; whether it was.
    fn agrees(text: &str) -> bool {
        let ours = encoded(text);
        let certain = certainly_one_value(text.as_bytes());
        if ours.is_some() || certain {
            let accepted = json::parsed(text.as_bytes(), Form::Jsonb);
            assert!(accepted.is_ok(), "taken for JSON: {text:?}: {accepted:?}");
        }
        if let Some(ours) = &ours {
            assert!(certain, "one grammar reads both: {text:?}");
            assert_same(ours, &by_postgresql(&format!("[{text}]")), text);
        }
        ours.is_some()
    }

    #[pg_test]
    fn plain_documents_are_encoded_as_postgresql_does() {
        let mut random = Random(1);
        let mut encoded = 0;
        for _ in 0..documents() {
            encoded += usize::from(agrees(&documents::document(&mut random, Kind::Plain)));
        }
        assert_eq!(encoded, documents(), "in none of these is anything to doubt");
    }

    #[pg_test]
    fn what_postgresql_refuses_is_not_encoded() {
        let mut random = Random(2);
        let (mut encoded, mut refused) = (0, 0);
        for _ in 0..documents() {
            let text = documents::damaged(&mut random);
            if agrees(&text) {
                encoded += 1;
            } else if json::parsed(text.as_bytes(), Form::Jsonb).is_err() {
                refused += 1;
            }
        }
        assert!(refused > documents() / 3, "only {refused} were no JSON");
        assert!(encoded > documents() / 20, "only {encoded} were JSON without doubt");
        log!("{} damaged documents: {encoded} encoded, {refused} refused", documents());
    }

    #[pg_test]
    fn an_array_is_as_postgresql_builds_it_whatever_its_elements() {
        let mut random = Random(3);
        let (mut encoded, mut total) = (0, 0);
        while total < documents() {
            let texts: Vec<String> = core::iter::repeat_with(|| documents::document(&mut random, Kind::Odd))
                .filter(|text| json::parsed(text.as_bytes(), Form::Jsonb).is_ok())
                .take(total % 70)
                .collect();
            let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();

            let ours = json::array_of(&bytes).expect("each is JSON");

            let text = format!("[{}]", texts.join(","));
            assert_same(&ours, &by_postgresql(&text), &text);
            encoded += texts.iter().filter(|text| self::encoded(text).is_some()).count();
            total += texts.len() + 1;
        }
        assert!(encoded > total / 2 && encoded < total * 9 / 10, "{encoded} of {total} were without doubt");
    }

    #[pg_test]
    fn counts_of_parts_around_the_stride_of_offsets() {
        for count in (0..140).chain([255, 256, 257, 1000]) {
            let of = |part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<Vec<_>>().join(",");
            assert!(agrees(&format!("[{}]", of(&|n| n.to_string()))), "{count} numbers");
            assert!(
                agrees(&format!("[{}]", of(&|n| format!("\"{}\"", "x".repeat(n % 7))))),
                "{count} strings"
            );
            assert!(agrees(&format!("{{{}}}", of(&|n| format!("\"{n}\":[{n}]")))), "{count} members");
            assert!(agrees(&format!("{{{}}}", of(&|n| format!("\"{}\":{n}", n % 20)))), "{count} in doubles");
        }
    }

    #[pg_test]
    fn a_large_element_is_encoded() {
        let string = format!("\"{}\"", "0123456\\n\\u001b\\\"".repeat(1_000_000));
        let array = format!("[{}]", vec!["{\"b\":12345.678,\"a\":null}"; 300_000].join(","));
        let object = format!(
            "{{{}}}",
            (0..300_000_u64).map(|n| format!("\"{}\":{n}", n * 7919 % 300_007)).collect::<Vec<_>>().join(",")
        );
        for text in [string, array, object] {
            let ours = encoded(&text).expect("there is nothing to doubt");
            assert!(ours == by_postgresql(&format!("[{text}]")), "{}...", &text[..60]);
        }
    }

    #[pg_test]
    fn a_whole_that_is_too_large_is_refused_as_postgresql_refuses_it() {
        let element = format!("\"{}\"", "x".repeat(20 << 20));
        let texts: Vec<&[u8]> = vec![element.as_bytes(); 13];

        let Err(Unfit::Whole(ours)) = json::array_of(&texts) else { panic!("260 MB do not fit") };

        let theirs = json::parsed(format!("[{}]", [element.as_str(); 13].join(",")).as_bytes(), Form::Jsonb);
        let theirs = theirs.expect_err("260 MB do not fit");
        assert_eq!((ours.code, ours.message), (theirs.code, theirs.message));
        assert!(json::array_of(&texts[1..]).is_ok(), "240 MB do");
    }

    #[pg_test]
    fn a_text_that_is_no_json_is_named_even_behind_more_than_fits() {
        let element = format!("\"{}\"", "x".repeat(20 << 20));
        let mut texts: Vec<&[u8]> = vec![element.as_bytes(); 14];
        texts.push(b"1,2");

        let Err(Unfit::Element(index, refusal)) = json::array_of(&texts) else {
            panic!("the last is no JSON")
        };

        assert_eq!((index, refusal.sqlstate().as_str()), (14, "22P02"));
    }
}
