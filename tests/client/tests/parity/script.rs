//! The script: SQL files in which comment lines say what each statement is.
//!
//! ```text
//! --# group                 begins a group: the tables are emptied
//! --!                       the statement prepares; both sides must accept it
//! --: name                  the statement is compared
//! --: name > a              the same, and :token(a) is the lock token in its row from here on
//! --: name unordered        the same, rows in any order
//! --: name nulls            is run once for each named argument, with NULL for it, and rolled back
//! ```
//!
//! `:now` is the time of the script in milliseconds, `:at` the same as timestamptz, `:server` the
//! server's own time in milliseconds at the start of the group; each may be followed by an offset
//! as in `:now+5000`. Short for what comes often: `:meta`, `:start(instance)`, `:raised(instance,
//! number)`, `:execute(instance,number)`, `:events(first,last)`.
//!
//! A call takes some milliseconds, by which ours move the caller's clock on: nothing that the script
//! compares may hang on those, so it looks at leases and at what is not due yet from a second away.

/// What `:now` stands for: ahead of any server's clock, and a multiple of every grain that the
/// comparison rounds to.
pub const NOW_MS: i64 = 2_000_000_000_000;

const FILES: &[&str] = &[
    include_str!("script/enqueue.sql"),
    include_str!("script/claim.sql"),
    include_str!("script/lease.sql"),
    include_str!("script/turn.sql"),
    include_str!("script/messages.sql"),
    include_str!("script/kv.sql"),
    include_str!("script/custom_status.sql"),
    include_str!("script/versions.sql"),
    include_str!("script/work_items.sql"),
    include_str!("script/sessions.sql"),
    include_str!("script/history.sql"),
    include_str!("script/inspect.sql"),
    include_str!("script/delete.sql"),
    include_str!("script/prune.sql"),
    include_str!("script/json.sql"),
    include_str!("script/clock.sql"),
    include_str!("script/cleanup.sql"),
];

/// Statements on the same rows.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Debug)]
pub enum Step {
    /// Prepares; fails on no side.
    Setup(String),
    Call(Call),
}

/// A statement that is compared.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    pub sql: String,
    /// The name for the lock token in the answer.
    pub token: Option<String>,
    pub unordered: bool,
    /// The argument that has been made NULL. Such a call is rolled back, and the tables are compared
    /// before that.
    pub null_argument: Option<String>,
}

impl Call {
    /// Whether the statement calls the function.
    pub fn calls(&self, function: &str) -> bool {
        self.sql.match_indices(&format!("{function}(")).any(|(place, _)| {
            !self.sql[..place].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        })
    }
}

/// The whole script.
pub fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for file in FILES {
        for block in blocks(file) {
            let (head, sql) = block.split_once('\n').unwrap_or((block, ""));
            let sql = sql.trim().trim_end_matches(';');
            let words: Vec<_> = head.split_whitespace().collect();
            match words[..] {
                ["--#", name] => groups.push(Group { name: name.to_owned(), steps: Vec::new() }),
                ["--!", ..] => last(&mut groups).push(Step::Setup(sql.to_owned())),
                ["--:", name, "nulls"] => last(&mut groups).extend(with_nulls(name, sql)),
                ["--:", name, ref how @ ..] => last(&mut groups).push(Step::Call(call(name, sql, how))),
                _ => panic!("unknown line in the script: {head}"),
            }
        }
    }
    groups
}

/// Parts that begin with a line of two dashes and a sign; what stands before the first is prose.
fn blocks(file: &str) -> Vec<&str> {
    let mut starts: Vec<_> = ["--#", "--!", "--:"]
        .iter()
        .flat_map(|sign| file.match_indices(sign))
        .map(|(place, _)| place)
        .filter(|&place| place == 0 || file[..place].ends_with('\n'))
        .collect();
    starts.sort_unstable();
    starts.push(file.len());
    starts.windows(2).map(|part| file[part[0]..part[1]].trim()).collect()
}

fn last(groups: &mut [Group]) -> &mut Vec<Step> {
    &mut groups.last_mut().expect("a file begins with a group").steps
}

fn call(name: &str, sql: &str, how: &[&str]) -> Call {
    let token = how.iter().position(|word| *word == ">").map(|place| how[place + 1].to_owned());
    Call {
        name: name.to_owned(),
        sql: sql.to_owned(),
        token,
        unordered: how.contains(&"unordered"),
        null_argument: None,
    }
}

/// The statement with one argument after the other made NULL; each stands on a line of its own.
fn with_nulls(name: &str, sql: &str) -> Vec<Step> {
    let lines: Vec<_> = sql.lines().collect();
    let of_argument = |place: usize| {
        let (argument, value) = lines[place].trim().split_once(" => ")?;
        let end = if value.ends_with(',') { "," } else { "" };
        let mut changed = lines.clone();
        let line = format!("{argument} => NULL{end}");
        changed[place] = &line;
        Some(Step::Call(Call {
            name: format!("{name}({argument})"),
            sql: changed.join("\n"),
            token: None,
            unordered: false,
            null_argument: Some(argument.to_owned()),
        }))
    };
    let calls: Vec<_> = (0..lines.len()).filter_map(of_argument).collect();
    assert!(!calls.is_empty(), "{name}: no named argument stands on a line of its own");
    calls
}

/// Puts in what the short forms stand for, for a server whose clock stands at `server_ms`.
pub fn fill(sql: &str, server_ms: i64) -> String {
    let mut filled = String::with_capacity(sql.len() + 256);
    let mut rest = sql;
    while let Some(place) = rest.find(':') {
        filled.push_str(&rest[..place]);
        rest = &rest[place..];
        match short_form(&rest[1..], server_ms) {
            Some((text, length)) => {
                filled.push_str(&text);
                rest = &rest[1 + length..];
            }
            None => {
                filled.push(':');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}

/// The text for the short form that `rest` begins with, and the form's length.
fn short_form(rest: &str, server_ms: i64) -> Option<(String, usize)> {
    let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(word);
    if ["now", "at", "server"].contains(&name) {
        let digits = match after.strip_prefix(['+', '-']) {
            Some(digits) => digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()) + 1,
            None => 0,
        };
        let offset: i64 = if digits > 1 { after[..digits].parse().ok()? } else { 0 };
        let length = word + if digits > 1 { digits } else { 0 };
        let text = match name {
            "now" => format!("{}", NOW_MS + offset),
            "server" => format!("{}", server_ms + offset),
            _ => format!("(timestamptz '2033-05-18 03:33:20+00' + {offset} * interval '1 millisecond')"),
        };
        return Some((text, length));
    }
    if name == "meta" {
        let text = r#"'{"orchestration_name": "O", "orchestration_version": "1.0.0"}'"#;
        return Some((text.into(), word));
    }
    let arguments = after.strip_prefix('(')?;
    let end = arguments.find(')')?;
    let mut arguments = arguments[..end].split(',');
    let (first, second) = (arguments.next()?, arguments.next().unwrap_or_default());
    let text = match name {
        "start" => format!(
            r#"'{{"StartOrchestration":{{"instance":"{first}","orchestration":"O","input":"in","version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}}}'"#
        ),
        "raised" => {
            format!(r#"'{{"ExternalRaised":{{"instance":"{first}","name":"e","data":"{second}"}}}}'"#)
        }
        "execute" => format!(
            r#"'{{"ActivityExecute":{{"instance":"{first}","execution_id":1,"id":{second},"name":"act","input":"x"}}}}'"#
        ),
        "events" => {
            let range = first.parse::<i64>().ok()?..=second.parse::<i64>().ok()?;
            let event = |id| {
                format!(
                    r#"{{"event_id":{id},"event_type":"T","event_data":"{{\"event_id\":{id},\"data\":\"d{id}\"}}"}}"#
                )
            };
            format!("'[{}]'", range.map(event).collect::<Vec<_>>().join(","))
        }
        _ => return None,
    };
    Some((text, word + 2 + end))
}
