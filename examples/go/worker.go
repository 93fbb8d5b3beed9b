// A worker for a duroxide_queue: it runs an orchestration and an activity (greet.go) until it is told to stop.
//
//	go mod init worker && go mod tidy     # or Debian's golang-github-lib-pq-dev, see ../README.md
//	DATABASE_URL='postgres://localhost/mydb?sslmode=disable' go run worker.go greet.go
//
// Everything that has to survive a crash is in the database. This process only holds leases: the right to be the only
// one who works on something, for LEASE_SECONDS. Kill it, and whoever comes when the lease has ended goes on.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lib/pq"
)

var (
	db    *sql.DB
	queue = pq.QuoteIdentifier(setting("QUEUE", "app"))
	lease = must(time.ParseDuration(setting("LEASE_SECONDS", "30") + "s"))
	work  = must(time.ParseDuration(setting("WORK_MS", "200") + "ms")) // how long the activity takes
	poll  = 200 * time.Millisecond                                     // a poll that finds nothing writes nothing
)

func setting(name, otherwise string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return otherwise
}

// must ends the process on an error. What it holds is free when the lease ends.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// encode gives a string: lib/pq would send []byte as bytea.
func encode(value any) string { return string(must(json.Marshal(value))) }

// now: the queue goes by its callers' clocks. Each call says what time it is, in milliseconds of the Unix epoch.
func now() int64 { return time.Now().UnixMilli() }

// call runs a function of the queue, whose name goes into each statement, not into search_path: nothing is kept in the
// session, so that any connection of the pool will do for the next call.
func call(function string, arguments ...any) error {
	_, err := db.Exec("SELECT "+queue+"."+function, arguments...)
	return err
}

// takeTurn claims an instance that has messages, and acknowledges the turn. sql.ErrNoRows: there is none.
func takeTurn() error {
	var t turn
	var orchestration, history, messages, token string // the token is the proof of this claim
	err := db.QueryRow(`SELECT out_instance_id, out_orchestration_name, out_execution_id, out_history, out_messages,
		out_lock_token FROM `+queue+`.fetch_orchestration_item($1, $2)`, now(), lease.Milliseconds()).
		Scan(&t.instance, &orchestration, &t.execution, &history, &messages, &token)
	if err != nil {
		return err
	}
	if json.Unmarshal([]byte(history), &t.history) != nil || orchestration != "Greet" {
		// Not ours, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
		return call("abandon_orchestration_item($1, $2, 1000)", token, now())
	}
	must(0, json.Unmarshal([]byte(messages), &t.messages))
	d := decide(t)
	// All or nothing: the history grows, the activity is sent, the messages and the lease go, in one transaction.
	err = call("ack_orchestration_item($1, $2, $3, $4, $5, '[]', $6)", token, now(), t.execution, encode(d.events),
		encode(d.activities), encode(d.outcome))
	if err == nil {
		fmt.Printf("%s: %d new events\n", t.instance, len(d.events))
	}
	return err
}

// runActivity claims a work item, runs it under a heartbeat, and sends the result to its instance.
func runActivity(stop context.Context) error {
	var item, token string
	var attempt int
	err := db.QueryRow("SELECT * FROM "+queue+".fetch_work_item($1, $2)", now(), lease.Milliseconds()).
		Scan(&item, &token, &attempt)
	if err != nil {
		return err
	}
	var items map[string]object
	must(0, json.Unmarshal([]byte(item), &items))
	todo := items["ActivityExecute"]
	if todo["name"] != "greet" {
		return call("abandon_work_item($1, $2, 1000)", token, now())
	}
	fmt.Printf("%s: greet, attempt %d\n", todo["instance"], attempt)

	ctx, interrupt := context.WithCancel(stop)
	defer interrupt()            // when the lease is lost there is no use in going on
	done := make(chan string, 1) // room for one: greet ends even when nobody waits for it any more
	go func() { done <- greet(ctx, todo["input"].(string)) }()
	heartbeat := time.NewTicker(lease / 3)
	defer heartbeat.Stop()
	for {
		select {
		case <-heartbeat.C: // still at work: keep the lease, or another worker would begin the same
			if err := call("renew_work_item_lock($1, $2, $3)", token, now(), int64(lease.Seconds())); err != nil {
				return err
			}
		case result := <-done:
			if result == "" { // free again at once, and this attempt does not count: nothing was wrong with the work
				fmt.Printf("%s: given back\n", todo["instance"])
				return call("abandon_work_item($1, $2, 0, true)", token, now())
			}
			completion := object{"ActivityCompleted": object{"instance": todo["instance"],
				"execution_id": todo["execution_id"], "id": todo["id"], "result": result}}
			return call("ack_worker($1, $2, $3, $4)", token, todo["instance"], encode(completion), now())
		}
	}
}

func main() {
	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	// lib/pq prepares a statement that has arguments in one round trip and runs it in another, and pgbouncer may send
	// the two to different backends. With binary_parameters it is one.
	db = must(sql.Open("postgres", must(pq.ParseURL(os.Getenv("DATABASE_URL")))+" binary_parameters=yes"))
	fmt.Println("ready: queue", queue)
	for stop.Err() == nil {
		err := takeTurn()
		if errors.Is(err, sql.ErrNoRows) {
			err = runActivity(stop)
		}
		var refusal *pq.Error
		if errors.Is(err, sql.ErrNoRows) {
			time.Sleep(poll)
		} else if errors.As(err, &refusal) && refusal.Code == "P0001" {
			// "Invalid lock token" and its like: the lease ended before we did, somebody else has it. Go on.
			fmt.Println("lost a claim:", refusal.Message)
		} else if err != nil {
			log.Fatal(err) // what it holds is free when the lease ends
		}
	}
	fmt.Println("stopped")
}
