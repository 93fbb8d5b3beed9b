"""A worker for a duroxide_queue: it runs the orchestration "Greet" and its activity "greet" until it is told to stop.

    pip install 'psycopg[binary]'
    DATABASE_URL=postgres://localhost/mydb python worker.py

Everything that has to survive a crash is in the database. This process only holds leases: the right to be the only one
who works on something, for LEASE_SECONDS. Kill it, and whoever comes when the lease has ended goes on.
"""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

QUEUE = os.environ.get("QUEUE", "app")
LEASE_SECONDS = int(os.environ.get("LEASE_SECONDS", "30"))
WORK_SECONDS = int(os.environ.get("WORK_MS", "200")) / 1000  # how long the activity takes
POLL_SECONDS = 0.2  # a poll that finds nothing writes nothing: poll as often as you like
stop = threading.Event()


def now():
    """The queue goes by its callers' clocks: each call says what time it is, in milliseconds of the Unix epoch."""
    return time.time_ns() // 1_000_000


def call(db, function, *arguments):
    """Calls a function of the queue and returns its row, None if it has none.

    The name of the queue goes into each statement, not into search_path: nothing is kept in the session, so that any
    connection of a pool will do for the next call.
    """
    marks = sql.SQL(", ").join(sql.Placeholder() * len(arguments))
    query = sql.SQL("SELECT * FROM {}({})").format(sql.Identifier(QUEUE, function), marks)
    return db.execute(query, arguments).fetchone()


def greet(name):
    """The activity. It looks at `stop` as everything that takes long should; None means that it was interrupted."""
    return None if stop.wait(WORK_SECONDS) else f"Hello, {name}!"


def decide(turn):
    """What comes next, from what has happened (the history) and what is new (the messages).

    Returns new events, activities to run, and what becomes of the execution. Events have the form that duroxide
    gives them, so that its client can read them and its runtime could take over.
    """
    instance, execution, history = turn["out_instance_id"], turn["out_execution_id"], turn["out_history"]
    events, activities = [], []
    outcome = {"orchestration_name": "Greet", "orchestration_version": "1.0.0"}

    def happened(kind, source=None, **fields):
        event = {"event_id": len(history) + len(events) + 1, "source_event_id": source, "instance_id": instance,
                 "execution_id": execution, "timestamp_ms": now(), "duroxide_version": "0.1.32", "type": kind, **fields}
        events.append(event)
        return event["event_id"]

    # A message that says nothing new (a second start, say) is consumed without a trace.
    seen = {event["type"] for event in history}
    for message in turn["out_messages"]:
        match message:
            case {"StartOrchestration": start} if "OrchestrationStarted" not in seen:
                seen.add("OrchestrationStarted")
                happened("OrchestrationStarted", name="Greet", version="1.0.0", input=start["input"],
                         parent_instance=None, parent_id=None)
                activity = happened("ActivityScheduled", name="greet", input=start["input"])
                activities.append({"ActivityExecute": {"instance": instance, "execution_id": execution, "id": activity,
                                                       "name": "greet", "input": start["input"]}})
                outcome["pinned_duroxide_version"] = {"major": 0, "minor": 1, "patch": 32}
            case {"ActivityCompleted": done} if "ActivityCompleted" not in seen:
                seen.add("ActivityCompleted")
                happened("ActivityCompleted", done["id"], result=done["result"])
                happened("OrchestrationCompleted", output=done["result"])
                outcome |= {"status": "Completed", "output": done["result"]}
    return events, activities, outcome


def take_turn(db):
    """Claims an instance that has messages, and acknowledges the turn. False if there is none."""
    turn = call(db, "fetch_orchestration_item", now(), LEASE_SECONDS * 1000)
    if turn is None:
        return False
    instance, token = turn["out_instance_id"], turn["out_lock_token"]  # the token is the proof of this claim
    if turn["out_orchestration_name"] != "Greet" or not isinstance(turn["out_history"], list):
        # Not ours, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
        call(db, "abandon_orchestration_item", token, now(), 1000)
        return True
    events, activities, outcome = decide(turn)
    delta = [{"event_id": e["event_id"], "event_type": e["type"], "event_data": json.dumps(e)} for e in events]
    # All or nothing: the history grows, the activity is sent, the messages and the lease go, in one transaction.
    json_arguments = (Jsonb(delta), Jsonb(activities), Jsonb([]), Jsonb(outcome))
    call(db, "ack_orchestration_item", token, now(), turn["out_execution_id"], *json_arguments)
    print(f"{instance}: {' and '.join(e['type'] for e in events) or 'nothing new'}", flush=True)
    return True


def run_activity(db, pool):
    """Claims a work item, runs it under a heartbeat, and sends the result to its instance. False if there is none."""
    claimed = call(db, "fetch_work_item", now(), LEASE_SECONDS * 1000)
    if claimed is None:
        return False
    token, work = claimed["out_lock_token"], json.loads(claimed["out_work_item"])["ActivityExecute"]
    if work["name"] != "greet":
        call(db, "abandon_work_item", token, now(), 1000)
        return True
    print(f"{work['instance']}: greet, attempt {claimed['out_attempt_count']}", flush=True)
    running = pool.submit(greet, work["input"])
    while not wait([running], timeout=LEASE_SECONDS / 3).done:
        # Still at work: keep the lease, or another begins the same. If it is lost, what greet gives goes nowhere.
        call(db, "renew_work_item_lock", token, now(), LEASE_SECONDS)
    result = running.result()
    if result is None:  # free again at once, and this attempt does not count: nothing was wrong with the work
        call(db, "abandon_work_item", token, now(), 0, True)
        print(f"{work['instance']}: given back", flush=True)
        return True
    done = {"instance": work["instance"], "execution_id": work["execution_id"], "id": work["id"], "result": result}
    call(db, "ack_worker", token, work["instance"], json.dumps({"ActivityCompleted": done}), now())
    return True


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    # autocommit: each call is a transaction of its own; nothing is held open between fetch and ack. prepare_threshold:
    # psycopg prepares what it has run five times, and behind pgbouncer the next run may meet a backend without it.
    settings = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
    with psycopg.connect(os.environ["DATABASE_URL"], **settings) as db, ThreadPoolExecutor() as pool:
        print(f"ready: queue {QUEUE}", flush=True)
        while not stop.is_set():
            try:
                if not (take_turn(db) or run_activity(db, pool)):
                    stop.wait(POLL_SECONDS)
            except psycopg.errors.RaiseException as error:
                # P0001, "Invalid lock token" and its like: the lease ended before we did, somebody else has it. Go on.
                # Any other error ends this process; what it holds is free when the lease ends.
                print(f"lost a claim: {error.diag.message_primary}", flush=True)
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
