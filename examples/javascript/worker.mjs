/**
 * A worker for a duroxide_queue: it runs the orchestration "Greet" and its activity "greet" until it is told to stop.
 *
 *     npm install pg
 *     DATABASE_URL=postgres://localhost/mydb node worker.mjs
 *
 * Everything that has to survive a crash is in the database. This process only holds leases: the right to be the only
 * one who works on something, for LEASE_SECONDS. Kill it, and whoever comes when the lease has ended goes on.
 */

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const QUEUE = process.env.QUEUE ?? "app";
const LEASE_SECONDS = Number(process.env.LEASE_SECONDS ?? 30);
const LEASE_MS = LEASE_SECONDS * 1000;
const WORK_MS = Number(process.env.WORK_MS ?? 200); // how long the activity takes
const POLL_MS = 200; // a poll that finds nothing writes nothing: poll as often as you like

const db = new pg.Client(process.env.DATABASE_URL);
const stopping = new AbortController();
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => stopping.abort());

/**
 * Calls a function of the queue and returns its row, undefined if it has none.
 *
 * The queue's name goes into each statement, not into search_path, and pg prepares nothing unless it is given a name:
 * no call leaves anything in the session, so any connection of a pool, or of pgbouncer, will do for the next.
 */
async function call(name, ...values) {
  const marks = values.map((_, i) => `$${i + 1}`).join(", ");
  const { rows } = await db.query(`SELECT * FROM ${pg.escapeIdentifier(QUEUE)}.${name}(${marks})`, values);
  return rows[0];
}

/** The activity. It looks at a signal, as everything that takes long should; undefined: it was interrupted. */
async function greet(name, signal) {
  try {
    await sleep(WORK_MS, undefined, { signal });
    return `Hello, ${name}!`;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

/**
 * What comes next, from what has happened (the history) and what is new (the messages): new events, activities to run,
 * and what becomes of the execution. Events have the form that duroxide gives them, so that its client can read them
 * and its runtime could take over.
 */
function decide({ out_instance_id: instance, out_execution_id, out_history: history, out_messages: messages }) {
  const execution = Number(out_execution_id); // pg gives a bigint as a string
  const events = [];
  const activities = [];
  const outcome = { orchestration_name: "Greet", orchestration_version: "1.0.0" };
  const happened = (type, fields, source_event_id = null) => {
    const event_id = history.length + events.length + 1;
    const common = { event_id, source_event_id, instance_id: instance, execution_id: execution };
    events.push({ ...common, timestamp_ms: Date.now(), duroxide_version: "0.1.32", type, ...fields });
    return event_id;
  };
  // A message that says nothing new (a second start, say) is consumed without a trace.
  const isNew = (type) => ![...history, ...events].some((event) => event.type === type);
  for (const { StartOrchestration: start, ActivityCompleted: done } of messages) {
    if (start && isNew("OrchestrationStarted")) {
      const { input } = start;
      const parent = { parent_instance: null, parent_id: null };
      happened("OrchestrationStarted", { name: "Greet", version: "1.0.0", input, ...parent });
      const id = happened("ActivityScheduled", { name: "greet", input });
      activities.push({ ActivityExecute: { instance, execution_id: execution, id, name: "greet", input } });
      outcome.pinned_duroxide_version = { major: 0, minor: 1, patch: 32 };
    } else if (done && isNew("ActivityCompleted")) {
      happened("ActivityCompleted", { result: done.result }, done.id);
      happened("OrchestrationCompleted", { output: done.result });
      Object.assign(outcome, { status: "Completed", output: done.result });
    }
  }
  return { events, activities, outcome };
}

/** Claims an instance that has messages, and acknowledges the turn. False if there is none. */
async function takeTurn() {
  const turn = await call("fetch_orchestration_item", Date.now(), LEASE_MS);
  if (!turn) return false;
  const token = turn.out_lock_token; // the proof of this claim
  if (turn.out_orchestration_name !== "Greet" || !Array.isArray(turn.out_history)) {
    // Not ours, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
    await call("abandon_orchestration_item", token, Date.now(), 1000);
    return true;
  }
  const { events, activities, outcome } = decide(turn);
  const delta = events.map((e) => ({ event_id: e.event_id, event_type: e.type, event_data: JSON.stringify(e) }));
  // All or nothing: the history grows, the activity is sent, the messages and the lease go, in one transaction.
  // pg would send an array as a PostgreSQL array: JSON has to be a string.
  const json = [delta, activities, [], outcome].map((value) => JSON.stringify(value));
  await call("ack_orchestration_item", token, Date.now(), turn.out_execution_id, ...json);
  console.log(`${turn.out_instance_id}: ${events.map((e) => e.type).join(" and ") || "nothing new"}`);
  return true;
}

/** Claims a work item, runs it under a heartbeat, and sends the result to its instance. False if there is none. */
async function runActivity() {
  const claimed = await call("fetch_work_item", Date.now(), LEASE_MS);
  if (!claimed) return false;
  const token = claimed.out_lock_token;
  const { instance, execution_id, id, name, input } = JSON.parse(claimed.out_work_item).ActivityExecute ?? {};
  if (name !== "greet") {
    await call("abandon_work_item", token, Date.now(), 1000);
    return true;
  }
  console.log(`${instance}: greet, attempt ${claimed.out_attempt_count}`);
  // While it works, keep the lease, or another worker would begin the same. If it is lost, there is no use in going on.
  const halt = new AbortController();
  const beat = () => call("renew_work_item_lock", token, Date.now(), LEASE_SECONDS).catch((error) => halt.abort(error));
  const heartbeat = setInterval(beat, LEASE_MS / 3);
  const onStop = () => halt.abort();
  stopping.signal.addEventListener("abort", onStop);
  const result = await greet(input, halt.signal);
  stopping.signal.removeEventListener("abort", onStop);
  clearInterval(heartbeat);
  if (halt.signal.reason instanceof pg.DatabaseError) throw halt.signal.reason;
  if (result === undefined) {
    // Free again at once, and this attempt does not count: nothing was wrong with the work.
    await call("abandon_work_item", token, Date.now(), 0, true);
    console.log(`${instance}: given back`);
    return true;
  }
  const completion = { ActivityCompleted: { instance, execution_id, id, result } };
  await call("ack_worker", token, instance, JSON.stringify(completion), Date.now());
  return true;
}

// Each call is a transaction of its own; nothing is held open between fetch and ack.
await db.connect();
console.log(`ready: queue ${QUEUE}`);
while (!stopping.signal.aborted) {
  try {
    if (!(await takeTurn()) && !(await runActivity())) {
      await sleep(POLL_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
  } catch (error) {
    // P0001, "Invalid lock token" and its like: the lease ended before we did, somebody else has it. Go on.
    // Any other error ends this process; what it holds is free when the lease ends.
    if (error.code !== "P0001") throw error;
    console.log(`lost a claim: ${error.message}`);
  }
}
await db.end();
console.log("stopped");
