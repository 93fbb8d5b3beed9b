//! Arguments as SQL expressions: of the right type, and as hostile as a type allows.

use crate::catalogue::{Argument, Function};
use crate::json::Json;
use crate::random::Random;
use crate::target::Encoding;

/// Instances that the tables are filled with.
pub const INSTANCES: &[&str] = &["i1", "i2", "i3", "i4", "i5", "i'6\" \\ %s $1", "i7", "new"];

/// Texts that divide by zero where something takes them for SQL.
pub const CANARIES: &[&str] = &[
    "E'\\nSELECT 1/0;--'",
    "E'x\\r\\n; SELECT 1/0; --'",
    "'\"; SELECT 1/0; --'",
    "'''; SELECT 1/0; --'",
    "E'\\\\''; SELECT 1/0; --'",
    "'$$; SELECT 1/0; --'",
    "'*/ SELECT 1/0; /*'",
    "') SELECT 1/0; --'",
    "'(SELECT 1/0)'",
];

/// Texts as SQL expressions that every encoding can hold, but for a few that some refuse.
const TEXTS: &[&str] = &[
    "''",
    "' '",
    "'x'",
    "''''",
    "'\"'",
    "'\\'",
    "'%'",
    "'%s%n%I%L'",
    "'$1'",
    "'$$'",
    "'{q} {key} {role} {name}'",
    "'; drop table x; --'",
    "'/*'",
    "'NULL'",
    "'-1'",
    "'trailing '",
    "E'\\x01\\x02\\x1b\\x7f'",
    "E'line\\nline\\r\\n\\ttab'",
    "E'caf\\xc3\\xa9'",
    "E'e\\xcc\\x81'",
    "E'\\xe9'",
    "E'\\xb0\\xa1\\xa4\\xa2'",
    "E'\\xa9\\xa1'",
    "E'\\xf0\\x9f\\x99\\x82'",
    "E'\\xff\\xfe'",
    "U&'\\20AC'",
    "U&'\\65E5\\672C'",
    "repeat('x', 63)",
    "repeat('x', 64)",
    "repeat('ab', 1000)",
    "repeat('x', 1000000)",
    "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 80) n)",
    "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 400) n)",
    "(SELECT t FROM stored WHERE id = 1)",
    "(SELECT t FROM stored WHERE id = 2)",
    "(SELECT t FROM stored WHERE id = 3)",
    "(SELECT t FROM stored WHERE id = 4)",
];

const BIGINTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "5",
    "1000",
    "30000",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "9223372036854775",
    "9223372036854776",
    "-9223372036854776",
    "9223371331199999",
    "9223371331200000",
    "-210866803200000",
    "-210866803200001",
    "9223372036854775806",
    "9223372036854775807",
    "-9223372036854775807",
    "(-9223372036854775808)",
];

const INTEGERS: &[&str] = &["0", "1", "2", "-1", "100", "2147483647", "(-2147483648)"];

pub const TIMES: &[&str] = &[
    "now()",
    "now() - interval '1 s'",
    "now() + interval '1 day'",
    "'infinity'",
    "'-infinity'",
    "'4713-01-01 00:00:00+00 BC'",
    "'0001-01-01 00:00:00+00 BC'",
    "'1970-01-01 00:00:00+00'",
    "'9999-12-31 23:59:59.999999+00'",
    "'294276-12-31 23:59:59.999999+00'",
];

const INTERVALS: &[&str] = &[
    "'0'",
    "'5 minutes'",
    "'-1 day'",
    "'178000000 years'",
    "'-178000000 years'",
    "'2562047788:00:54.775807'",
];

const OIDS: &[&str] = &["0", "1", "4294967295", "'fuzz'::regnamespace::oid", "'pg_class'::regclass::oid"];

const ARRAYS: &[&str] = &[
    "'{}'",
    "ARRAY['i1']",
    "ARRAY['i2', 'i3', 'i2']",
    "ARRAY[NULL]",
    "ARRAY[NULL, 'gpu', 'w', 'i3', '']",
    "ARRAY[['i1', 'i2'], ['i3', NULL]]",
    "ARRAY[[['w']]]",
    "'[5:6]={w,gpu}'",
    "'[-2147483648:-2147483647]={i1,i2}'",
    "array_fill('i4'::text, ARRAY[1000])",
    "ARRAY[repeat('x', 1000000)]",
    "(SELECT array_agg(n::text) FROM generate_series(1, 5000) n)",
    "(SELECT a FROM stored WHERE id = 1)",
    "(SELECT a FROM stored WHERE id = 2)",
    "ARRAY[E'\\x01', '\"', '''', '{', '}', ',', '\\']",
];

const SCHEMAS: &[&str] = &[
    "'fuzz'",
    "'fuzz'",
    "'q\" ''\\$1.%I'",
    "'adoptable'",
    "'adopted'",
    "'empty'",
    "'fresh'",
    "'Fresh \"2\" ''x'''",
    "'{q}'",
    "'occupied'",
    "'public'",
    "'pg_catalog'",
    "'pg_fuzz'",
    "'information_schema'",
    "'duroxide_queue'",
    "'\"fuzz\"'",
    "'fuzz '",
    "'FUZZ'",
];

const ROLES: &[&str] = &[
    "'postgres'",
    "current_user::text",
    "'pg_monitor'",
    "'pg_read_all_data'",
    "'public'",
    "'PUBLIC'",
    "'current_user'",
    "'session_user'",
    "'nobody at all'",
    "'pg_monitor, postgres'",
    "'pg_monitor WITH GRANT OPTION'",
    "'none'",
];

/// Generates arguments.
pub struct Values {
    pub random: Random,
    pub encoding: Encoding,
}

impl Values {
    /// An argument for a function. The milder the call, the more of its arguments are as they should be.
    pub fn argument(&mut self, function: &Function, argument: &Argument, mild: bool) -> String {
        let sql_type = &argument.sql_type;
        let (null, wild) = if mild { (2, 4) } else { (8, 40) };
        if self.random.percent(null) {
            return format!("NULL::{sql_type}");
        }
        let value = if self.random.percent(wild) {
            self.hostile(sql_type)
        } else {
            self.fitting(function, argument, mild).unwrap_or_else(|| self.hostile(sql_type))
        };
        format!("({value})::{sql_type}")
    }

    /// Any value of a type.
    pub fn hostile(&mut self, sql_type: &str) -> String {
        match sql_type {
            "text" => self.text(),
            "text[]" => self.random.pick(ARRAYS).to_owned(),
            "bigint" => self.random.pick(BIGINTS).to_owned(),
            "integer" => self.random.pick(INTEGERS).to_owned(),
            "boolean" => (self.random.pick(&["true", "false"])).to_owned(),
            "timestamp with time zone" => self.random.pick(TIMES).to_owned(),
            "interval" => self.random.pick(INTERVALS).to_owned(),
            "oid" => self.random.pick(OIDS).to_owned(),
            "jsonb" if self.random.percent(10) => (*self
                .random
                .pick(&["(SELECT j FROM stored WHERE id = 1)", "(SELECT j FROM stored WHERE id = 2)"]))
            .to_owned(),
            "jsonb" => {
                let text = self.json(20).hostile();
                quoted(&text)
            }
            other => panic!("no values of type {other}: a function has got a new kind of argument"),
        }
    }

    /// Any text. One that the database cannot hold is refused before the call, and tells little.
    pub fn text(&mut self) -> String {
        if self.random.percent(15) {
            let text = self.json(20).hostile();
            return quoted(&text);
        }
        if self.random.percent(10) {
            return self.random.pick(CANARIES).to_owned();
        }
        let mut text = self.random.pick(TEXTS);
        for _ in 0..3 {
            if self.encoding.can_hold(text) {
                break;
            }
            text = self.random.pick(TEXTS);
        }
        text.to_owned()
    }

    fn json(&mut self, one_in: u64) -> Json<'_> {
        Json { random: &mut self.random, one_in, instances: INSTANCES }
    }

    /// What a function expects of an argument of this name.
    fn fitting(&mut self, function: &Function, argument: &Argument, mild: bool) -> Option<String> {
        let queue = &function.schema;
        let salt = self.random.below(1000);
        let token_of = |table: &str| {
            format!(
                "SELECT lock_token FROM {queue}.{table} WHERE lock_token IS NOT NULL \
                 ORDER BY hashtext(lock_token || '{salt}') LIMIT 1"
            )
        };
        let one_in = if mild { 400 } else { 12 };
        if let Some(json) = self.json(one_in).argument(&argument.name) {
            return Some(quoted(&json));
        }
        let name = argument.name.as_str();
        Some(match name {
            "p_instance_id" | "p_instance" => quoted(self.random.pick(INSTANCES)),
            "p_lock_token" => {
                let of_items = function.name.contains("work");
                let table =
                    if of_items != self.random.percent(5) { "worker_queue" } else { "instance_locks" };
                token_of(table)
            }
            "p_now_ms" => {
                let off = self.random.pick(&["0", "0", "0", "1", "-1000", "60000", "-86400000", "86400000"]);
                format!("(extract(epoch FROM clock_timestamp()) * 1000)::bigint + {off}")
            }
            "p_execution_id" | "p_activity_id" | "p_keep_last" => self.random.between(1, 4).to_string(),
            "p_tag_mode" => quoted(self.random.pick(&["default_only", "tags", "default_and", "any", "none"])),
            "p_tag" | "p_session_id" | "p_owner_id" => {
                quoted(self.random.pick(&["gpu", "s1", "s2", "w", "w2"]))
            }
            "p_key" => quoted(self.random.pick(&["key 1", "key 2", "none"])),
            "p_status" => quoted(self.random.pick(&["Running", "Completed", "Failed", "running"])),
            "schema_name" if mild => match function.name.as_str() {
                "create_queue" => self.random.pick(&["'fresh'", "'empty'"]).to_owned(),
                "adopt_queue" => "'adoptable'".to_owned(),
                "release_queue" => "'adopted'".to_owned(),
                _ => "'fuzz'".to_owned(),
            },
            "role_name" if mild => "'pg_monitor'".to_owned(),
            "schema_name" | "role_name" if self.random.percent(20) => self.random.pick(CANARIES).to_owned(),
            "schema_name" => self.random.pick(SCHEMAS).to_owned(),
            "role_name" => self.random.pick(ROLES).to_owned(),
            "id" => format!("SELECT id FROM fuzz.dead_letters ORDER BY hashint8(id + {salt}) LIMIT 1"),
            _ if name.ends_with("_ms") || name.ends_with("_secs") || name.ends_with("version") => {
                (self.random.pick(&["0", "1", "500", "30000", "1000000"])).to_owned()
            }
            "p_visible_at" => (self.random.pick(&["now()", "now() - interval '1 s'"])).to_owned(),
            _ => return None,
        })
    }
}

/// A text as an SQL literal.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
