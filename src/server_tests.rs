//! What only shows inside a server: that our reading of JSON, time, names and keys is PostgreSQL's.

mod documents;
mod jsonb;

#[pgrx::pg_schema]
mod tests {
    use super::documents::Random;
    use crate::clock;
    use crate::json::certainly_one_value;
    use crate::pg::advisory::Key;
    use crate::pg::json::{self, Form, Unfit};
    use crate::pg::planner;
    use crate::pg::values::Timestamptz;
    use pgrx::prelude::*;
    use pgrx::{IntoDatum, PgSqlErrorCode};

    fn one<T: FromDatum + IntoDatum>(query: &str) -> T {
        Spi::get_one(query).expect("the query runs").expect("the query returns a value")
    }

    /// Texts made of pieces of JSON, most of them broken in some way.
    fn json_like(random: &mut Random) -> String {
        const PIECES: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\"",
            "\"a\"",
            "\"\\n\"",
            "\"\\u0041\"",
            "\"\\u0000\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud800\"",
            "0",
            "-1",
            "1.5",
            "1e5",
            "1e400",
            "1e999999",
            "01",
            "true",
            "false",
            "null",
            "nul",
            "x",
            "\\",
            "\"\u{e9}\"",
            "{\"a\":1}",
            "[1,2]",
            "-",
            ".",
            "\u{1}",
        ];
        let length = 1 + random.below(6);
        (0..length).map(|_| PIECES[random.below(PIECES.len())]).collect()
    }

    #[pg_test]
    fn what_is_certain_postgresql_accepts() {
        let mut random = Random(1);
        let mut certain = 0;
        for _ in 0..20_000 {
            let text = json_like(&mut random);
            if certainly_one_value(text.as_bytes()) {
                certain += 1;
                let accepted = json::parsed(text.as_bytes(), Form::Jsonb);
                assert!(accepted.is_ok(), "{text:?}: {accepted:?}");
            }
        }
        assert!(certain > 500, "only {certain} of the generated texts were certain");
    }

    #[pg_test]
    fn a_refusal_carries_postgresqls_code() {
        let cases = [
            ("not json", PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, "22P02"),
            ("", PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, "22P02"),
            ("1,2", PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, "22P02"),
            (r#""\u0000""#, PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER, "22P05"),
            (r#""\ud800""#, PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, "22P02"),
            ("1e999999", PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "22003"),
        ];
        for (text, code, sqlstate) in cases {
            let refusal = json::check(text.as_bytes(), Form::Jsonb).expect_err(text);
            assert_eq!(refusal.code, code, "{text:?}: {}", refusal.message);
            assert_eq!(refusal.sqlstate(), sqlstate, "{text:?}");
        }
        assert!(json::check(br#""\u0000""#, Form::Json).is_ok(), "json, not jsonb, holds any escape");
    }

    #[pg_test]
    fn deep_nesting_is_refused_and_the_backend_lives() {
        let deep = "[".repeat(1_000_000);
        let refusal = json::check(deep.as_bytes(), Form::Jsonb).expect_err("too deep");

        assert_eq!(refusal.sqlstate(), "54001");
        assert_eq!(one::<i32>("SELECT 1"), 1);
    }

    #[pg_test]
    fn an_array_has_one_element_a_text() {
        let array = json::array_of(&[b"1", b" {\"b\": 1, \"a\": [null]} ", b"\"x\""]).expect("all are JSON");
        let expected = json::of_text(r#"[1, {"a": [null], "b": 1}, "x"]"#);
        assert_eq!(array, expected);
        assert_eq!(json::array_of(&[]).expect("an empty array"), json::of_text("[]"));
    }

    #[pg_test]
    fn a_long_array_is_built_in_parts() {
        let element = format!("\"{}\"", "x".repeat(9 << 20));
        let texts: Vec<&[u8]> = vec![element.as_bytes(); 7];

        let array = json::array_of(&texts).expect("63 MB are no problem");

        assert_eq!(array, json::of_text(&format!("[{}]", [element.as_str(); 7].join(","))));
    }

    #[pg_test]
    fn texts_that_are_json_only_together_are_told_apart() {
        for (texts, bad) in [
            (vec!["1", "2,3"], 1),
            (vec!["[1", "2]"], 0),
            (vec!["\"a", "b\""], 0),
            (vec!["1,2", "[3", "4]"], 0),
            (vec!["{}", ""], 1),
        ] {
            let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            match json::array_of(&bytes) {
                Err(Unfit::Element(index, _)) => assert_eq!(index, bad, "{texts:?}"),
                other => panic!("{texts:?}: {other:?}"),
            }
        }
    }

    #[pg_test]
    fn milliseconds_become_timestamps_exactly() {
        for ms in
            [0, 1, -1, 1_700_000_000_123, -62_135_596_800_000, 253_402_300_799_999, 9_224_318_015_999_999]
        {
            let exact = one::<i64>(&format!(
                "SELECT ({ms}::numeric * 1000 - extract(epoch FROM timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint"
            ));
            assert_eq!(clock::timestamptz(ms).expect("in range"), Timestamptz(exact), "{ms}");
        }
        for ms in [i64::MAX, i64::MIN, 9_224_318_016_000_000, -210_866_803_200_001] {
            assert!(clock::timestamptz(ms).is_err(), "{ms}");
        }
    }

    #[pg_test]
    fn the_key_is_that_of_pg_advisory_lock() {
        for id in ["app.a", "app.", "My Queue.1.\u{e9}"] {
            let key = one::<i64>(&format!("SELECT hashtext({})::bigint", pgrx::spi::quote_literal(id)));
            Spi::run(&format!("SELECT pg_advisory_xact_lock({key})")).expect("nobody else holds it");
            let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
            let before = one::<i64>(held);

            assert!(Key(key).try_lock(), "a key that this session holds can be taken again");
            assert_eq!(one::<i64>(held), before, "it is the same lock");
            Key(key).unlock();
            assert_eq!(one::<i64>(held), before, "and still held once");
        }
    }

    #[pg_test]
    fn plans_of_a_call_go_by_index_and_no_others() {
        Spi::run(
            "CREATE TABLE few (id int PRIMARY KEY); INSERT INTO few VALUES (1); ANALYZE few; SET jit = on",
        )
        .expect("a table of one row");
        let plan = || one::<pgrx::Json>("EXPLAIN (FORMAT json) SELECT FROM few WHERE id = 1").0.to_string();
        let settings = || one::<String>("SELECT current_setting('enable_seqscan') || current_setting('jit')");

        assert!(plan().contains("Seq Scan"), "a table of one block is read as it is: {}", plan());
        let inside = planner::during_call(|| {
            planner::during_statement(crate::db::Planning::InIndexOrder, || (plan(), settings()))
        });
        assert!(!inside.0.contains("Seq Scan"), "{}", inside.0);
        assert_eq!(inside.1, "onon", "what else runs in a call finds the session's own settings");
        assert!(plan().contains("Seq Scan"), "after the call plans are as they were: {}", plan());
    }

    #[pg_test]
    fn a_queue_works_in_a_schema_whose_name_needs_quotes() {
        Spi::run(
            r#"SELECT duroxide_queue.create_queue('My "Q".1');
               SELECT "My ""Q"".1".enqueue_orchestrator_work('a', '{}', 'epoch')"#,
        )
        .expect("the name is quoted where it is used");

        let id =
            one::<String>(r#"SELECT out_instance_id FROM "My ""Q"".1".fetch_orchestration_item(1, 1000)"#);
        assert_eq!(id, "a");
    }
}
