//! What travels through the queue. Each message and work item has a name of its own, so that it can
//! be followed from the call that sent it to the turn that consumed it.
#![allow(dead_code, reason = "part of two programs, and each needs a part of it")]

use serde_json::{Map, Value, json};

/// A message or a work item, in the form that duroxide gives them: an object with one member.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The name of the member.
    pub form: String,
    /// Whom it is for.
    pub instance: String,
    /// Its own name.
    pub uid: String,
    /// How many payloads may follow from it, one from the other: what keeps the traffic finite.
    pub hops: u64,
    /// What else its form asks for.
    pub more: Map<String, Value>,
}

impl Payload {
    /// A message or a work item without anything else.
    pub fn new(form: &str, instance: &str, uid: &str, hops: u64) -> Payload {
        Payload {
            form: form.to_owned(),
            instance: instance.to_owned(),
            uid: uid.to_owned(),
            hops,
            more: Map::new(),
        }
    }

    /// The same with another member.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Payload {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// An activity to run, and its message of completion is named after it.
    pub fn activity(instance: &str, uid: &str, hops: u64, execution_id: i64, activity_id: i64) -> Payload {
        Payload::new("ActivityExecute", instance, uid, hops)
            .with("execution_id", execution_id)
            .with("id", activity_id)
            .with("name", "A")
            .with("input", "")
    }

    /// What running this activity comes to.
    pub fn completion(&self) -> Payload {
        let mut completion =
            Payload::new("ActivityCompleted", &self.instance, &completion_of(&self.uid), self.hops);
        completion.more = self.more.clone();
        completion
    }

    /// As the queue holds it.
    pub fn json(&self) -> Value {
        let mut members = self.more.clone();
        members.insert("instance".into(), self.instance.as_str().into());
        members.insert("uid".into(), self.uid.as_str().into());
        members.insert("hops".into(), self.hops.into());
        json!({ &self.form: members })
    }

    /// Reads one back; `None` if it is nothing that [`Payload::json`] has made.
    pub fn of(value: &Value) -> Option<Payload> {
        let (form, members) = value.as_object().filter(|object| object.len() == 1)?.iter().next()?;
        let text = |name| members.get(name)?.as_str().map(str::to_owned);
        Some(Payload {
            form: form.clone(),
            instance: text("instance")?,
            uid: text("uid")?,
            hops: members.get("hops")?.as_u64()?,
            more: members.as_object()?.clone(),
        })
    }

    /// Reads one back from text.
    pub fn parse(text: &str) -> Option<Payload> {
        Payload::of(&serde_json::from_str(text).ok()?)
    }
}

/// The name of the message that tells of a work item's end.
pub fn completion_of(uid: &str) -> String {
    format!("{uid}!")
}

/// The name of an instance: one that needs quoting wherever it could be forgotten.
pub fn instance(number: u64) -> String {
    format!("i'{number}\" \\é %s")
}
