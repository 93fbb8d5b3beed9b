//! What a dispatcher saw, one JSON object a line. A line that is written survives the process, and
//! the server too.
#![allow(dead_code, reason = "part of two programs, and each needs a part of it")]

use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// What a dispatcher has to tell.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A claim of an instance, committed: names of the messages, and the attempt as told.
    Claim { messages: Vec<String>, attempt: i64 },
    /// A claim of a work item, committed.
    ItemClaim { item: String, attempt: i64 },
    /// A work item was acknowledged at this attempt.
    ItemAck { item: String, attempt: i64 },
    /// A claim of these was given back so that it does not count, or perhaps was.
    Uncounted { names: Vec<String> },
    /// A turn was acknowledged.
    Turn,
    /// The connection broke under a fetch: it may have claimed something.
    FetchInDoubt,
    /// The server refused a call that it may refuse.
    Refused { message: String },
    /// Something happened that must not happen.
    Violation { what: String },
}

impl Entry {
    fn json(&self) -> Value {
        match self {
            Entry::Claim { messages, attempt } => json!({"claim": messages, "attempt": attempt}),
            Entry::ItemClaim { item, attempt } => json!({"item_claim": item, "attempt": attempt}),
            Entry::ItemAck { item, attempt } => json!({"item_ack": item, "attempt": attempt}),
            Entry::Uncounted { names } => json!({"uncounted": names}),
            Entry::Turn => json!({"turn": 1}),
            Entry::FetchInDoubt => json!({"fetch_in_doubt": 1}),
            Entry::Refused { message } => json!({"refused": message}),
            Entry::Violation { what } => json!({"violation": what}),
        }
    }

    fn of(line: &Value) -> Option<Entry> {
        let (kind, value) = line.as_object()?.iter().find(|(name, _)| *name != "attempt")?;
        let attempt = || line.get("attempt")?.as_i64();
        let text = || value.as_str().map(str::to_owned);
        let names = || -> Option<Vec<String>> {
            value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        };
        Some(match kind.as_str() {
            "claim" => Entry::Claim { messages: names()?, attempt: attempt()? },
            "item_claim" => Entry::ItemClaim { item: text()?, attempt: attempt()? },
            "item_ack" => Entry::ItemAck { item: text()?, attempt: attempt()? },
            "uncounted" => Entry::Uncounted { names: names()? },
            "turn" => Entry::Turn,
            "fetch_in_doubt" => Entry::FetchInDoubt,
            "refused" => Entry::Refused { message: text()? },
            "violation" => Entry::Violation { what: text()? },
            _ => return None,
        })
    }
}

/// The journal of one process.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    /// Begins one.
    pub fn begin(path: &Path) -> Journal {
        Journal(File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Writes an entry in one piece.
    pub fn note(&self, entry: &Entry) {
        let line = format!("{}\n", entry.json());
        (&self.0).write_all(line.as_bytes()).expect("the journal can be written");
    }

    /// Reads a journal; what its process was writing as it died is left out.
    pub fn read(path: &Path) -> Vec<Entry> {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| {
                let value = serde_json::from_str(line).ok();
                value.as_ref().and_then(Entry::of).unwrap_or_else(|| panic!("a strange entry: {line}"))
            })
            .collect()
    }
}
