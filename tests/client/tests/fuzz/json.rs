//! JSON as the functions expect it, with something hostile in it here and there.

use crate::random::Random;

/// Values that are JSON, or nearly, and that some parser somewhere does not bear.
const HOSTILE: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1.00",
    "1e400",
    "-1e400",
    "1e-400",
    "1e131072",
    "1e131071",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "12345678901234567890123",
    "2147483648",
    "0.1000000000000000055511151231257827021181583404541015625",
    "\"\"",
    "\"0\"",
    "\"9223372036854775808\"",
    "\"1e9\"",
    "\" 1 \"",
    "\"NaN\"",
    "\"infinity\"",
    "\"\\u0000\"",
    "\"a\\u0000b\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\ud83d\\ude42\"",
    "\"\\u20ac\"",
    "\"\\u00e9\"",
    "\"%s %n $1 ' \\\\ \\\" {q}\"",
    "\"\t\"",
    "\"\\x\"",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[{}]",
    "{\"a\":1,\"a\":2}",
    "{\"\":{\"\":{}}}",
    "{\"instance\":null}",
    "1,2",
    "[1",
    "{\"a\"}",
    "{a:1}",
    "'a'",
    "NaN",
    "-",
    "01",
    "+1",
    "tru",
    "",
];

/// Generates JSON texts; in one of so many places there is something hostile.
pub struct Json<'a> {
    pub random: &'a mut Random,
    pub one_in: u64,
    /// Texts for names of instances.
    pub instances: &'a [&'a str],
}

impl Json<'_> {
    /// What an argument of this name expects, `None` if nothing in particular.
    pub fn argument(&mut self, name: &str) -> Option<String> {
        Some(match name {
            "p_history_delta" | "p_events" => self.list(Self::event),
            "p_worker_items" => self.list(Self::work_item),
            "p_orchestrator_items" => self.list(Self::message),
            "p_cancelled_activities" => self.list(Self::activity),
            "p_metadata" => self.metadata(),
            "p_work_item" => self.message(),
            "p_completion_json" => self.completion(),
            _ => return None,
        })
    }

    /// Something hostile.
    pub fn hostile(&mut self) -> String {
        match self.random.below(30) {
            0 => nested("[", "]", 10_000),
            1 => nested("{\"a\":", "}", 10_000),
            2 => format!("[{}0]", "1,".repeat(50_000)),
            3 => format!("\"{}\"", "\\u00e9".repeat(20_000)),
            4 => format!("{{{}\"z\":0}}", "\"k\":1,".repeat(10_000)),
            5 => "9".repeat(2000),
            6 => format!("1.{}", "0".repeat(20_000)),
            _ => (self.random.pick(HOSTILE)).to_owned(),
        }
    }

    fn or_hostile(&mut self, valid: String) -> String {
        if self.random.below(self.one_in) == 0 { self.hostile() } else { valid }
    }

    fn list(&mut self, element: fn(&mut Self) -> String) -> String {
        let count = self.random.pick(&[0, 0, 1, 1, 1, 2, 3, 20]);
        let elements: Vec<String> = (0..count).map(|_| element(self)).collect();
        self.or_hostile(format!("[{}]", elements.join(",")))
    }

    fn object(&mut self, members: &[(&str, String)]) -> String {
        let mut text = Vec::new();
        for (name, value) in members {
            // Left away, or there twice.
            let times = match self.random.below(20) {
                0 => 0,
                1 => 2,
                _ => 1,
            };
            for _ in 0..times {
                let value = self.or_hostile(value.clone());
                text.push(format!("\"{name}\":{value}"));
            }
        }
        self.or_hostile(format!("{{{}}}", text.join(",")))
    }

    fn instance(&mut self) -> String {
        string(self.random.pick(self.instances))
    }

    fn id(&mut self) -> String {
        self.random.between(1, 12).to_string()
    }

    fn event(&mut self) -> String {
        let data = if self.random.below(self.one_in) == 0 { self.hostile() } else { "{\"a\":1}".to_owned() };
        let id = self.random.between(-1, 40).to_string();
        let kind = string("OrchestrationStarted");
        self.object(&[("event_id", id), ("event_type", kind), ("event_data", string(&data))])
    }

    fn work_item(&mut self) -> String {
        let members = [
            ("instance", self.instance()),
            ("execution_id", self.id()),
            ("id", self.id()),
            ("name", string("A")),
            ("input", string("")),
            ("session_id", string("s")),
            ("tag", "null".to_owned()),
        ];
        let item = self.object(&members);
        self.object(&[("ActivityExecute", item)])
    }

    fn message(&mut self) -> String {
        const FORMS: [&str; 11] = [
            "StartOrchestration",
            "ContinueAsNew",
            "TimerFired",
            "ActivityCompleted",
            "ActivityFailed",
            "ExternalRaised",
            "CancelInstance",
            "SubOrchCompleted",
            "SubOrchFailed",
            "QueueMessage",
            "Unheard",
        ];
        let members = [
            ("instance", self.instance()),
            ("parent_instance", self.instance()),
            ("orchestration", string("O")),
            ("version", string("1.0.0")),
            ("execution_id", self.id()),
            ("fire_at_ms", self.random.between(0, 4_000_000_000_000).to_string()),
            ("input", string("{}")),
        ];
        let message = self.object(&members);
        let form = self.random.pick(&FORMS);
        self.object(&[(form, message)])
    }

    fn completion(&mut self) -> String {
        let members = [
            ("instance", self.instance()),
            ("execution_id", self.id()),
            ("id", self.id()),
            ("result", string("r")),
        ];
        let completion = self.object(&members);
        self.object(&[("ActivityCompleted", completion)])
    }

    fn activity(&mut self) -> String {
        let members =
            [("instance", self.instance()), ("execution_id", self.id()), ("activity_id", self.id())];
        self.object(&members)
    }

    fn metadata(&mut self) -> String {
        let status = string(self.random.pick(&["Running", "Completed", "Failed", "ContinuedAsNew", "x"]));
        let action = string(self.random.pick(&["set", "clear", "x"]));
        let version = [("major", self.id()), ("minor", self.id()), ("patch", self.id())];
        let version = self.object(&version);
        let mutations = self.list(Self::mutation);
        let parent = self.instance();
        self.object(&[
            ("orchestration_name", string("O")),
            ("orchestration_version", string("1.0.0")),
            ("parent_instance_id", parent),
            ("status", status),
            ("output", string("out")),
            ("pinned_duroxide_version", version),
            ("custom_status_action", action),
            ("custom_status_value", string("status")),
            ("kv_mutations", mutations),
        ])
    }

    fn mutation(&mut self) -> String {
        let action = string(self.random.pick(&["set", "clear_key", "clear_all", "x"]));
        let key = string(&format!("key {}", self.random.below(4)));
        let now = self.random.between(0, 4_000_000_000_000).to_string();
        self.object(&[("action", action), ("key", key), ("value", string("v")), ("last_updated_at_ms", now)])
    }
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}0{}", open.repeat(depth), close.repeat(depth))
}

/// A text as a JSON string.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
