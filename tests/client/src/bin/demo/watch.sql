-- Notes who takes, extends and ends a lease, as it happens: most leases of the demo last only
-- some milliseconds, too short to be seen by looking at the tables now and then. A queue needs
-- nothing of this.

DROP SCHEMA IF EXISTS demo_watch CASCADE;
CREATE SCHEMA demo_watch;

CREATE TABLE demo_watch.notes (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at_ms bigint NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000,
    runtime text NOT NULL DEFAULT current_setting('application_name'),
    source text NOT NULL,
    event text NOT NULL,
    lock_token text NOT NULL,
    locked_until bigint,
    instance_id text,
    work_item text,
    attempt_count integer
);

CREATE FUNCTION demo_watch.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    event text := CASE
        WHEN after ->> 'lock_token' IS DISTINCT FROM before ->> 'lock_token'
            THEN CASE WHEN after ->> 'lock_token' IS NULL THEN 'released' ELSE 'claimed' END
        WHEN after ->> 'locked_until' IS DISTINCT FROM before ->> 'locked_until' THEN 'renewed'
    END;
    lease jsonb := CASE WHEN event = 'released' THEN before ELSE after END;
BEGIN
    IF event IS NOT NULL THEN
        INSERT INTO demo_watch.notes
            (source, event, lock_token, locked_until, instance_id, work_item, attempt_count)
        VALUES (TG_TABLE_NAME, event, lease ->> 'lock_token', (lease ->> 'locked_until')::bigint,
            lease ->> 'instance_id', lease ->> 'work_item', (lease ->> 'attempt_count')::integer);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER demo_watch AFTER INSERT OR UPDATE OR DELETE ON demo.instance_locks
    FOR EACH ROW EXECUTE FUNCTION demo_watch.note();
CREATE TRIGGER demo_watch AFTER UPDATE OR DELETE ON demo.orchestrator_queue
    FOR EACH ROW EXECUTE FUNCTION demo_watch.note();
CREATE TRIGGER demo_watch AFTER UPDATE OR DELETE ON demo.worker_queue
    FOR EACH ROW EXECUTE FUNCTION demo_watch.note();
