//! The orchestration "Greet" and its activity "greet".

use crate::queue::now;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

/// What comes of a turn.
pub struct Decision {
    /// New events, with their numbers and kinds.
    pub events: Vec<Value>,
    /// Activities to run.
    pub activities: Vec<Value>,
    /// What becomes of the execution.
    pub outcome: Value,
}

/// The orchestration: what comes next, from what has happened (`history`) and what is new (`messages`).
pub fn decide(instance: &str, execution: i64, history: &[Value], messages: &[Value]) -> Decision {
    let (mut events, mut activities) = (Vec::new(), Vec::new());
    let mut outcome = json!({"orchestration_name": "Greet", "orchestration_version": "1.0.0"});
    // An event has the form that duroxide gives it: its client can read it, and its runtime could take over.
    let event = |id: i64, source: Option<&Value>, kind: &str, mut fields: Value| {
        fields["event_id"] = json!(id);
        fields["source_event_id"] = json!(source);
        fields["instance_id"] = json!(instance);
        fields["execution_id"] = json!(execution);
        fields["timestamp_ms"] = json!(now());
        fields["duroxide_version"] = json!("0.1.32");
        fields["type"] = json!(kind);
        json!({"event_id": id, "event_type": kind, "event_data": fields.to_string()})
    };
    for message in messages {
        let (start, done) = (&message["StartOrchestration"], &message["ActivityCompleted"]);
        match history.len() + events.len() {
            0 if start.is_object() => {
                let input = &start["input"];
                let started = json!({"name": "Greet", "version": "1.0.0", "input": input,
                                     "parent_instance": null, "parent_id": null});
                events.push(event(1, None, "OrchestrationStarted", started));
                events.push(event(2, None, "ActivityScheduled", json!({"name": "greet", "input": input})));
                let activity = json!({"instance": instance, "execution_id": execution, "id": 2,
                                      "name": "greet", "input": input});
                activities.push(json!({ "ActivityExecute": activity }));
                outcome["pinned_duroxide_version"] = json!({"major": 0, "minor": 1, "patch": 32});
            }
            2 if done.is_object() => {
                let result = &done["result"];
                events.push(event(3, Some(&done["id"]), "ActivityCompleted", json!({"result": result})));
                events.push(event(4, None, "OrchestrationCompleted", json!({"output": result})));
                outcome["status"] = json!("Completed");
                outcome["output"] = result.clone();
            }
            _ => {} // It says nothing new (a second start, say) and is consumed without a trace.
        }
    }
    Decision { events, activities, outcome }
}

/// The activity. It listens to `stop`, as everything that takes long should; `None`: it was interrupted.
pub async fn greet(name: &str, takes: Duration, mut stop: watch::Receiver<bool>) -> Option<String> {
    tokio::select! {
        () = tokio::time::sleep(takes) => Some(format!("Hello, {name}!")),
        _ = stop.wait_for(|stop| *stop) => None,
    }
}
