//! Scripts made by chance: what dispatchers and workers do, in orders that nobody thought of.
//!
//! They keep clear of the differences that are meant to be: work items become visible in the order
//! of their ids, leases are renewed to later ends only, whatever names an instance has a name, and no
//! lease ends at a moment that is asked about.

use crate::script::{Call, NOW_MS, Step};

const INSTANCES: u64 = 4;
/// Among more than this whose leases have expired, ours take those first whose leases expired first.
const MOST: usize = 8;

/// Chance that is the same in each run of a seed.
pub struct Chance {
    state: u64,
    now_ms: i64,
    event_id: u64,
    tokens: Tokens,
    /// For messages and for work items: whether there may be two more.
    room: (bool, bool),
}

/// Names of tokens that have been asked for; whether there was one, only the queues know.
#[derive(Default)]
struct Tokens {
    instances: Vec<String>,
    work_items: Vec<String>,
}

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance { state: seed, now_ms: NOW_MS, event_id: 0, tokens: Tokens::default(), room: (true, true) }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let place = self.below(choices.len() as u64);
        choices[usize::try_from(place).expect("a small number")]
    }

    fn instance(&mut self) -> String {
        format!("i{}", self.below(INSTANCES))
    }

    /// The next step, the `number`th of its script, for queues that hold so many messages and work
    /// items.
    pub fn step(&mut self, number: usize, messages: usize, work_items: usize) -> Step {
        let mut token = None;
        let now = self.now_ms;
        self.room = (messages < MOST - 1, work_items < MOST - 1);
        let (name, sql) = match self.below(20) {
            0..=3 if self.room.0 => ("enqueue", self.enqueue()),
            0..=6 => {
                let name = format!("o{number}");
                self.tokens.instances.push(name.clone());
                token = Some(name);
                let lease = self.one_of(&[2_500, 17_500, 62_500]);
                let versions = self.one_of(&["", "", ", 0, 1999999", ", 2000000, 2000000", ", 1000000"]);
                ("claim", format!("SELECT * FROM fetch_orchestration_item({now}, {lease}{versions})"))
            }
            7..=9 => ("ack", self.ack()),
            10 => {
                let lease = self.recent(|tokens| &tokens.instances);
                let how = self.one_of(&["", ", NULL, true", ", 10000", ", 5000, true", ", -1, false"]);
                ("abandon", format!("SELECT abandon_orchestration_item({lease}, {now}{how})"))
            }
            11 => {
                let lease = self.recent(|tokens| &tokens.instances);
                let seconds = self.one_of(&[17, 63, 301]);
                ("renew", format!("SELECT renew_orchestration_item_lock({lease}, {now}, {seconds})"))
            }
            12 if self.room.1 => {
                let (instance, session) = (self.instance(), self.one_of(&["NULL", "'s1'", "'s2'"]));
                let tag = self.one_of(&["NULL", "NULL", "'t'"]);
                let id = self.below(9);
                (
                    "enqueue_work",
                    format!(
                        "SELECT enqueue_worker_work('{{\"n\": {id}}}', {now}, '{instance}', 1, {id}, {session}, {tag})"
                    ),
                )
            }
            12..=14 => {
                let name = format!("w{number}");
                self.tokens.work_items.push(name.clone());
                token = Some(name);
                let lease = self.one_of(&[2_500, 17_500, 62_500]);
                let owner = self.one_of(&["NULL", "'w1'", "'w2'"]);
                let tags = self.one_of(&["'default_only'", "'any'", "'tags'", "'default_and'"]);
                (
                    "claim_work",
                    format!(
                        "SELECT * FROM fetch_work_item({now}, {lease}, {owner}, 62500, ARRAY['t'], {tags})"
                    ),
                )
            }
            15 => {
                let lease = self.recent(|tokens| &tokens.work_items);
                let instance = self.instance();
                let rest = match self.below(3) {
                    0 => "",
                    1 if self.room.0 => ", 'INSTANCE', '{\"ActivityCompleted\":{}}', NOW",
                    _ => ", NULL, NULL, NOW",
                };
                let rest = rest.replace("INSTANCE", &instance).replace("NOW", &now.to_string());
                ("ack_work", format!("SELECT ack_worker({lease}{rest})"))
            }
            16 => {
                let lease = self.recent(|tokens| &tokens.work_items);
                ("renew_work", format!("SELECT renew_work_item_lock({lease}, {now}, 63)"))
            }
            17 => ("maintain", self.maintain()),
            18 => ("read", self.read()),
            _ => {
                self.now_ms += self.one_of(&[5_000, 10_000, 30_000]);
                ("depths", format!("SELECT * FROM get_queue_depths({})", self.now_ms))
            }
        };
        Step::Call(Call {
            name: format!("{number} {name}"),
            sql,
            token,
            unordered: false,
            null_argument: None,
        })
    }

    /// One of the last few tokens, most of them still good for something.
    fn recent(&mut self, kind: fn(&Tokens) -> &Vec<String>) -> String {
        let count = kind(&self.tokens).len();
        if count == 0 {
            return "'lock_nobody'".into();
        }
        let back = usize::try_from(self.below(count.min(4) as u64)).expect("a small number");
        format!(":token({})", kind(&self.tokens)[count - 1 - back])
    }

    fn enqueue(&mut self) -> String {
        let instance = self.instance();
        let message = self.one_of(&[
            r#"{"StartOrchestration":{"instance":"I","orchestration":"O","version":"1.2.0","execution_id":2}}"#,
            r#"{"ContinueAsNew":{"instance":"I","orchestration":"P"}}"#,
            r#"{"ExternalRaised":{"instance":"I", "data": 1.00}}"#,
            "[1, 2]",
        ]);
        let offset = self.one_of(&[-5_000, 0, 0, 5_000, 20_000]);
        format!(
            "SELECT enqueue_orchestrator_work('{instance}', '{}', to_timestamp(({}) / 1000))",
            message.replace("\"I\"", &format!("\"{instance}\"")),
            self.now_ms + offset
        )
    }

    fn ack(&mut self) -> String {
        let lease = self.recent(|tokens| &tokens.instances);
        let execution = self.one_of(&[1, 1, 2, 3]);
        let list = |items: Vec<String>| format!("'[{}]'", items.join(","));
        let history = (0..self.below(3)).map(|_| {
            self.event_id += 1;
            let carried =
                if self.event_id.is_multiple_of(5) { r#"\"carry_forward_events\":[1,2]"# } else { "" };
            format!(r#"{{"event_id":{},"event_type":"T","event_data":"{{{carried}}}"}}"#, self.event_id)
        });
        let history = list(history.collect());
        let count = if self.room.1 { self.below(3) } else { 0 };
        let work_items = (0..count).map(|_| {
            let (instance, session) = (self.instance(), self.one_of(&["null", "\"s1\"", "\"s2\""]));
            let (id, tag) = (self.below(9), self.one_of(&["null", "\"t\""]));
            format!(
                r#"{{"ActivityExecute":{{"instance":"{instance}","execution_id":1,"id":{id},"session_id":{session},"tag":{tag}}}}}"#
            )
        });
        let work_items = list(work_items.collect());
        let count = if self.room.0 { self.below(3) } else { 0 };
        let messages = (0..count).map(|_| {
            let (instance, fire_at) = (self.instance(), self.now_ms + self.one_of(&[-5_000, 5_000, 10_000]));
            let kind = self.one_of(&["TimerFired", "ExternalRaised", "ContinueAsNew", "Unknown"]);
            format!(r#"{{"{kind}":{{"instance":"{instance}","orchestration":"Q","fire_at_ms":{fire_at}}}}}"#)
        });
        let messages = list(messages.collect());
        let metadata = self.metadata();
        let cancelled = (0..self.below(2)).map(|_| {
            let (instance, id) = (self.instance(), self.below(9));
            format!(r#"{{"instance":"{instance}","execution_id":1,"activity_id":{id}}}"#)
        });
        let cancelled = list(cancelled.collect());
        format!(
            "SELECT ack_orchestration_item({lease}, {}, {execution}, {history}, {work_items}, {messages}, \
             {metadata}, {cancelled})",
            self.now_ms
        )
    }

    fn metadata(&mut self) -> String {
        let named = self.one_of(&[r#""orchestration_name":"O","orchestration_version":"1","#, "", ""]);
        let parent = self.one_of(&[r#""parent_instance_id":"i0","#, "", ""]);
        let status = self.one_of(&[
            "null",
            "null",
            "\"Running\"",
            "\"Completed\"",
            "\"ContinuedAsNew\"",
            "\"Failed\"",
        ]);
        let custom = self.one_of(&[
            "",
            "",
            r#""custom_status_action":"set","custom_status_value":"busy","#,
            r#""custom_status_action":"clear","#,
        ]);
        let pinned = self.one_of(&[
            "",
            "",
            r#""pinned_duroxide_version":{"major":1,"minor":2,"patch":3},"#,
            r#""pinned_duroxide_version":{"major":2,"minor":0,"patch":0},"#,
        ]);
        let mutations = (0..self.below(5)).map(|_| {
            let key = self.below(3);
            match self.below(5) {
                0 => r#"{"action":"clear_all"}"#.to_owned(),
                1 => format!(r#"{{"action":"clear_key","key":"k{key}"}}"#),
                2 => format!(r#"{{"action":"set","key":"k{key}","value":"old","last_updated_at_ms":7}}"#),
                _ => format!(r#"{{"action":"set","key":"k{key}","value":"{}"}}"#, self.below(100)),
            }
        });
        let mutations = mutations.collect::<Vec<_>>().join(",");
        format!(
            r#"'{{{named}{parent}{custom}{pinned}"status":{status},"output":"out","kv_mutations":[{mutations}]}}'"#
        )
    }

    fn maintain(&mut self) -> String {
        let instance = self.instance();
        match self.below(5) {
            // The parent of several could be refused for the sake of any of them.
            0 if instance != "i0" => format!(
                "SELECT * FROM delete_instances_atomic(ARRAY['{instance}'], {})",
                self.one_of(&["true", "false"])
            ),
            1 => format!("SELECT * FROM prune_executions('{instance}', {})", self.below(3)),
            2 => format!("SELECT * FROM prune_executions('{instance}', NULL, {})", self.now_ms - 5_000),
            3 => format!("SELECT cleanup_orphaned_sessions({})", self.now_ms),
            _ => format!("SELECT renew_session_lock(ARRAY['w1'], {}, 62500, 32500)", self.now_ms),
        }
    }

    fn read(&mut self) -> String {
        let instance = self.instance();
        let call = self.one_of(&[
            "* FROM get_instance_info('I')",
            "* FROM get_execution_info('I', 1)",
            "* FROM get_instance_stats('I')",
            "* FROM get_kv_all_values('I') ORDER BY 1",
            "* FROM get_kv_value('I', 'k1')",
            "* FROM get_custom_status('I', 1)",
            "* FROM fetch_history('I')",
            "* FROM list_executions('I')",
            "* FROM list_children('I') ORDER BY 1",
            "* FROM list_instances() ORDER BY 1",
            "* FROM list_instances_by_status('Running') ORDER BY 1",
            "* FROM get_system_metrics()",
            "get_parent_id('I')",
            "latest_execution_id('I')",
        ]);
        format!("SELECT {}", call.replace("'I'", &format!("'{instance}'")))
    }
}
