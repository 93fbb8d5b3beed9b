-- What a queue has beside the client's tables, created or adopted; release_queue takes it away.

-- The claim's two ways to a message: unclaimed ones in the order of the claim, and claimed ones by
-- the end of their lease, so that live leases and messages of the future are never in the way.
CREATE INDEX orchestrator_queue_ready_idx ON {q}.orchestrator_queue (visible_at, id)
  WHERE lock_token IS NULL;
CREATE INDEX orchestrator_queue_leased_idx ON {q}.orchestrator_queue (locked_until, id)
  WHERE lock_token IS NOT NULL;
CREATE INDEX worker_queue_ready_idx ON {q}.worker_queue (visible_at, id)
  WHERE lock_token IS NULL;
CREATE INDEX worker_queue_leased_idx ON {q}.worker_queue (locked_until, id)
  WHERE lock_token IS NOT NULL;

-- An identity, so that who may insert a letter needs no right on a sequence.
CREATE TABLE {q}.dead_letters (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id bigint NOT NULL,
  instance_id text NOT NULL,
  work_item text NOT NULL,
  visible_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  attempt_count integer NOT NULL,
  buried_at timestamptz NOT NULL,
  sqlstate text NOT NULL,
  reason text NOT NULL
);

COMMENT ON TABLE {q}.dead_letters IS
  'Messages that could never be delivered, taken out of the queue with the reason.';

CREATE TABLE {q}._duroxide_queue (
  origin text NOT NULL CHECK (origin IN ('created', 'adopted')),
  layout integer NOT NULL,
  made_schema boolean NOT NULL,
  replaced_functions text[] NOT NULL
);

COMMENT ON TABLE {q}._duroxide_queue IS
  'One row: how the extension duroxide_queue came to serve this schema, and what it replaced here.';
