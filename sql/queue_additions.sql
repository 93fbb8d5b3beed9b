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
COMMENT ON COLUMN {q}.dead_letters.message_id IS 'Its id in orchestrator_queue, which redrive gives back to it.';
COMMENT ON COLUMN {q}.dead_letters.work_item IS 'The text of the message, to be repaired before redrive.';
COMMENT ON COLUMN {q}.dead_letters.visible_at IS 'Its place in the queue, which redrive gives back to it.';
COMMENT ON COLUMN {q}.dead_letters.attempt_count IS 'How often it had been claimed.';
COMMENT ON COLUMN {q}.dead_letters.buried_at IS 'When a fetch took it out of the queue, by the clock of its caller.';
COMMENT ON COLUMN {q}.dead_letters.sqlstate IS 'The SQLSTATE of what PostgreSQL says of the text.';
COMMENT ON COLUMN {q}.dead_letters.reason IS 'What PostgreSQL says of the text.';

CREATE TABLE {q}._duroxide_queue (
  origin text NOT NULL CHECK (origin IN ('created', 'adopted')),
  layout integer NOT NULL,
  made_schema boolean NOT NULL,
  replaced_functions text[] NOT NULL
);

COMMENT ON TABLE {q}._duroxide_queue IS
  'One row: how the extension duroxide_queue came to serve this schema, and what it replaced here.';
COMMENT ON COLUMN {q}._duroxide_queue.origin IS 'created or adopted.';
COMMENT ON COLUMN {q}._duroxide_queue.layout IS 'Version of what the extension has added to the schema.';
COMMENT ON COLUMN {q}._duroxide_queue.made_schema IS 'Whether create_queue has made the schema, so that drop_queue may drop it.';
COMMENT ON COLUMN {q}._duroxide_queue.replaced_functions IS 'Definitions of the functions that release_queue puts back.';
