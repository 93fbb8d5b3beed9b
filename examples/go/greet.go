package main

import (
	"context"
	"time"
)

// object is JSON: what a message, a work item or an event holds.
type object map[string]any

// turn is an instance that has been claimed: what has happened to it, and what is new.
type turn struct {
	instance  string
	execution int64
	history   []object
	messages  []map[string]object // {"<kind>": {<body>}}
}

// decision is what comes of a turn: new events, activities to run, and what becomes of the execution.
type decision struct {
	events, activities []object
	outcome            object
}

// happened adds an event and returns its number. Events have the form that duroxide gives them, so that its client can
// read them and its runtime could take over.
func (d *decision) happened(t turn, kind string, source any, event object) int {
	id := len(t.history) + len(d.events) + 1
	event["event_id"], event["source_event_id"], event["type"] = id, source, kind
	event["instance_id"], event["execution_id"] = t.instance, t.execution
	event["timestamp_ms"], event["duroxide_version"] = now(), "0.1.32"
	d.events = append(d.events, object{"event_id": id, "event_type": kind, "event_data": encode(event)})
	return id
}

// decide is the orchestration "Greet". What says nothing new (a second start, say) is consumed without a trace.
func decide(t turn) decision {
	d := decision{[]object{}, []object{}, object{"orchestration_name": "Greet", "orchestration_version": "1.0.0"}}
	for _, message := range t.messages {
		reached := len(t.history) + len(d.events) // 0: nothing has happened yet; 2: the activity is on its way
		if start := message["StartOrchestration"]; start != nil && reached == 0 {
			d.happened(t, "OrchestrationStarted", nil, object{"name": "Greet", "version": "1.0.0",
				"input": start["input"], "parent_instance": nil, "parent_id": nil})
			id := d.happened(t, "ActivityScheduled", nil, object{"name": "greet", "input": start["input"]})
			d.activities = append(d.activities, object{"ActivityExecute": object{"instance": t.instance,
				"execution_id": t.execution, "id": id, "name": "greet", "input": start["input"]}})
			d.outcome["pinned_duroxide_version"] = object{"major": 0, "minor": 1, "patch": 32}
		} else if done := message["ActivityCompleted"]; done != nil && reached == 2 {
			d.happened(t, "ActivityCompleted", done["id"], object{"result": done["result"]})
			d.happened(t, "OrchestrationCompleted", nil, object{"output": done["result"]})
			d.outcome["status"], d.outcome["output"] = "Completed", done["result"]
		}
	}
	return d
}

// greet is the activity. It looks at ctx as everything that takes long should; "" means that it was interrupted.
func greet(ctx context.Context, name string) string {
	select {
	case <-time.After(work):
		return "Hello, " + name + "!"
	case <-ctx.Done():
		return ""
	}
}
