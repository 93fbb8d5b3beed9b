import java.net.URI;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;

/**
 * A worker for a duroxide_queue: it runs the orchestration "Greet" and its activity "greet" until it is told to stop.
 * <pre>DATABASE_URL=postgres://postgres@localhost/mydb java -cp /usr/share/java/postgresql.jar Worker.java</pre>
 *
 * Everything that has to survive a crash is in the database. This process only holds leases: the right to be the only
 * one who works on something, for LEASE_SECONDS. Kill it, and whoever comes when the lease has ended goes on.
 */
public class Worker {
    static final String QUEUE = '"' + System.getenv().getOrDefault("QUEUE", "app").replace("\"", "\"\"") + '"';
    static final long LEASE_SECONDS = Long.parseLong(System.getenv().getOrDefault("LEASE_SECONDS", "30"));
    static final long WORK_MS = Long.parseLong(System.getenv().getOrDefault("WORK_MS", "200")); // of the activity
    static final long POLL_MS = 200; // a poll that finds nothing writes nothing: poll as often as you like
    // The queue's name goes into each statement, not into search_path: nothing is kept in the session, so that any
    // connection of a pool will do for the next call. The JDK has no JSON: PostgreSQL takes it apart and builds it.
    static final String FETCH_TURN = """
        SELECT f.*, out_orchestration_name = 'Greet' AND jsonb_typeof(out_history) = 'array' AS ours,
               jsonb_path_query_first(out_history, '$.size()')::int AS happened,
               jsonb_path_query_first(out_messages, '$[*].StartOrchestration') ->> 'input' AS started,
               jsonb_path_query_first(out_messages, '$[*].ActivityCompleted') ->> 'result' AS result
        FROM %s.fetch_orchestration_item(?, ?) f""".formatted(QUEUE);
    // Events have the form that duroxide gives them, so that its client can read them and its runtime could take over.
    static final String ACK_TURN = """
        WITH turn (token, now, execution, instance, input, result) AS (VALUES (?, ?::bigint, ?::bigint, ?, ?, ?)),
        event (id, type, data) AS (
          SELECT id, type, body || jsonb_build_object('event_id', id, 'source_event_id', source, 'type', type,
            'instance_id', instance, 'execution_id', execution, 'timestamp_ms', now, 'duroxide_version', '0.1.32')
          FROM turn, LATERAL (VALUES
            (input IS NOT NULL, 1, NULL, 'OrchestrationStarted', jsonb_build_object('name', 'Greet', 'version',
              '1.0.0', 'input', input, 'parent_instance', NULL, 'parent_id', NULL)),
            (input IS NOT NULL, 2, NULL, 'ActivityScheduled', jsonb_build_object('name', 'greet', 'input', input)),
            (result IS NOT NULL, 3, 2, 'ActivityCompleted', jsonb_build_object('result', result)),
            (result IS NOT NULL, 4, NULL, 'OrchestrationCompleted', jsonb_build_object('output', result))
          ) e (happened, id, source, type, body) WHERE happened)
        SELECT %s.ack_orchestration_item(token, now, execution,
          (SELECT coalesce(jsonb_agg(jsonb_build_object('event_id', id, 'event_type', type, 'event_data', data::text)),
             '[]') FROM event),
          CASE WHEN input IS NULL THEN jsonb '[]' ELSE jsonb_build_array(jsonb_build_object('ActivityExecute',
            jsonb_build_object('instance', instance, 'execution_id', execution, 'id', 2, 'name', 'greet',
              'input', input))) END, '[]',
          jsonb_build_object('orchestration_name', 'Greet', 'orchestration_version', '1.0.0')
          || CASE WHEN input IS NULL THEN jsonb '{}'
             ELSE '{"pinned_duroxide_version": {"major": 0, "minor": 1, "patch": 32}}' END
          || CASE WHEN result IS NULL THEN jsonb '{}'
             ELSE jsonb_build_object('status', 'Completed', 'output', result) END)
        FROM turn""".formatted(QUEUE);
    static final String FETCH_WORK = """
        SELECT *, a->>'instance' AS instance, a->>'input' AS input, a->>'name' AS name
        FROM (SELECT *, out_work_item::jsonb->'ActivityExecute' AS a FROM %s.fetch_work_item(?, ?)) f""".formatted(QUEUE);
    static final String ACK_WORK = """
        SELECT %s.ack_worker(?, a->>'instance', jsonb_build_object('ActivityCompleted',
          (a - 'name' - 'input') || jsonb_build_object('result', ?::text))::text, ?)
        FROM (SELECT ?::jsonb->'ActivityExecute' AS a) w""".formatted(QUEUE);
    static final ExecutorService POOL = Executors.newCachedThreadPool();
    static final CountDownLatch STOP = new CountDownLatch(1);
    static Connection db;

    /** Runs a statement and returns its row, null if it has none. */
    static ResultSet call(String sql, Object... arguments) throws SQLException {
        PreparedStatement statement = db.prepareStatement(sql);
        statement.closeOnCompletion();
        for (int i = 0; i < arguments.length; i++) statement.setObject(i + 1, arguments[i]);
        ResultSet rows = statement.executeQuery();
        if (rows.next()) return rows;
        statement.close();
        return null;
    }
    static boolean tell(String function, Object... arguments) throws SQLException {
        call("SELECT " + QUEUE + "." + function, arguments).close();
        return true;
    }

    /** The queue goes by its callers' clocks: each call says what time it is, in milliseconds of the Unix epoch. */
    static long now() { return System.currentTimeMillis(); }

    /** The activity. It looks at STOP, as everything that takes long should; null: it was interrupted. */
    static String greet(String name) throws InterruptedException {
        return STOP.await(WORK_MS, TimeUnit.MILLISECONDS) ? null : "Hello, " + name + "!";
    }

    /** Claims an instance that has messages, and acknowledges the turn. False if there is none. */
    static boolean takeTurn() throws SQLException {
        try (ResultSet turn = call(FETCH_TURN, now(), LEASE_SECONDS * 1000)) {
            if (turn == null) return false;
            String instance = turn.getString("out_instance_id"), token = turn.getString("out_lock_token");
            // Another's, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
            if (!turn.getBoolean("ours")) return tell("abandon_orchestration_item(?, ?, 1000)", token, now());
            // What says nothing new (a second start, say) is consumed without a trace.
            String input = turn.getInt("happened") == 0 ? turn.getString("started") : null;
            String result = turn.getInt("happened") == 2 ? turn.getString("result") : null;
            // All or nothing, in one transaction: history grows, the activity is sent, the messages and the lease go.
            call(ACK_TURN, token, now(), turn.getLong("out_execution_id"), instance, input, result).close();
            System.out.println(instance + ": " + (input == null && result == null ? 0 : 2) + " new events");
            return true;
        }
    }

    /** Claims a work item, runs it under a heartbeat, and sends the result to its instance. False if there is none. */
    static boolean runActivity() throws Exception {
        try (ResultSet work = call(FETCH_WORK, now(), LEASE_SECONDS * 1000)) {
            if (work == null) return false;
            String token = work.getString("out_lock_token"), input = work.getString("input");
            if (!"greet".equals(work.getString("name"))) return tell("abandon_work_item(?, ?, 1000)", token, now());
            System.out.println(work.getString("instance") + ": greet, attempt " + work.getInt("out_attempt_count"));
            Future<String> running = POOL.submit(() -> greet(input));
            while (true) try {
                String result = running.get(LEASE_SECONDS * 1000 / 3, TimeUnit.MILLISECONDS);
                if (result == null) { // free again at once, and this attempt does not count: the work is not to blame
                    tell("abandon_work_item(?, ?, 0, true)", token, now());
                    System.out.println(work.getString("instance") + ": given back");
                } else call(ACK_WORK, token, result, now(), work.getString("out_work_item")).close();
                return true;
            } catch (TimeoutException stillAtWork) { // keep the lease, or another worker would begin the same
                tell("renew_work_item_lock(?, ?, ?)", token, now(), LEASE_SECONDS);
            }
        }
    }

    public static void main(String[] none) throws Exception {
        Thread main = Thread.currentThread(); // SIGTERM and SIGINT run the hook; left alone, the JVM ends with 143 then
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            STOP.countDown();
            try { main.join(); } catch (InterruptedException e) { main.interrupt(); }
        }));
        URI url = new URI(System.getenv("DATABASE_URL"));
        String[] user = (url.getUserInfo() + ":").split(":", 3);
        Properties settings = new Properties();
        // The driver prepares what it has run five times; behind pgbouncer the next run may meet a backend without it.
        settings.putAll(Map.of("user", user[0], "password", user[1], "prepareThreshold", "0"));
        String server = "jdbc:postgresql://" + url.getAuthority().replaceFirst(".*@", "");
        db = DriverManager.getConnection(server + url.getPath(), settings);
        System.out.println("ready: queue " + QUEUE);
        while (STOP.getCount() > 0) try {
            if (!takeTurn() && !runActivity()) STOP.await(POLL_MS, TimeUnit.MILLISECONDS);
        } catch (SQLException error) {
            if (!"P0001".equals(error.getSQLState())) {
                error.printStackTrace();
                Runtime.getRuntime().halt(1); // what it holds is free when the lease ends
            } // "Invalid lock token" and its like: the lease ended before we did, somebody else has it. Go on.
            System.out.println("lost a claim: " + error.getMessage());
        }
        System.out.println("stopped");
        Runtime.getRuntime().halt(0);
    }
}
