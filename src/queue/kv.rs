//! The key-value store of an instance: a store of what earlier executions left, and a delta of what
//! the running one has changed since. A NULL in the delta says that the key is gone.

use crate::db::{Db, Planning, Statement, types::*};
use crate::pg::result_set::ResultSet;
use crate::pg::values::{Jsonb, Text, TextBuf};

/// A turn's mutations as one set. Of several to one key the last counts, and none before the last
/// `clear_all`, which leaves NULL at every key that the store, the delta or an earlier mutation has.
static APPLY_MUTATIONS: Statement = Statement {
    text: "
WITH mutations AS (
  SELECT m.place, m.value->>'action' AS action, m.value->>'key' AS key, m.value->>'value' AS value,
         CASE WHEN m.value->>'action' = 'set'
              THEN coalesce((m.value->>'last_updated_at_ms')::bigint, $3) ELSE $3 END AS updated_ms
  FROM pg_catalog.jsonb_array_elements($2->'kv_mutations') WITH ORDINALITY AS m (value, place)
), cleared AS (
  SELECT coalesce(pg_catalog.max(place), 0) AS place FROM mutations WHERE action = 'clear_all'
), final AS (
  SELECT DISTINCT ON (m.key) m.key,
         CASE WHEN m.action = 'set' THEN m.value END AS value,
         m.updated_ms
  FROM mutations m, cleared
  WHERE m.action IN ('set', 'clear_key') AND m.place > cleared.place
  ORDER BY m.key, m.place DESC
), emptied AS (
  SELECT s.key FROM {q}.kv_store s, cleared WHERE s.instance_id = $1 AND cleared.place > 0
  UNION
  SELECT d.key FROM {q}.kv_delta d, cleared WHERE d.instance_id = $1 AND cleared.place > 0
  UNION
  SELECT m.key FROM mutations m, cleared WHERE m.action IN ('set', 'clear_key') AND m.place < cleared.place
), outcome AS (
  SELECT f.key, f.value, f.updated_ms FROM final f
  UNION ALL
  SELECT e.key, NULL, $3 FROM emptied e WHERE NOT EXISTS (SELECT FROM final f WHERE f.key = e.key)
)
INSERT INTO {q}.kv_delta (instance_id, key, value, last_updated_at_ms)
SELECT $1, o.key, o.value, o.updated_ms FROM outcome o
ON CONFLICT (instance_id, key) DO UPDATE
SET value = EXCLUDED.value, last_updated_at_ms = EXCLUDED.last_updated_at_ms",
    parameters: &[TEXT, JSONB, INT8],
    planning: Planning::ByStatistics,
};

/// Applies the `kv_mutations` of a turn's metadata to the delta.
pub(crate) fn apply_mutations(db: &Db, instance: &[u8], metadata: Option<Jsonb>, now_ms: i64) {
    db.query(&APPLY_MUTATIONS, &[instance.into(), metadata.into(), now_ms.into()]);
}

static MERGE_DELTA: Statement = Statement {
    text: "
WITH delta AS (
  DELETE FROM {q}.kv_delta d WHERE d.instance_id = $1
  RETURNING d.key, d.value, d.last_updated_at_ms
), stored AS (
  INSERT INTO {q}.kv_store (instance_id, key, value, execution_id, last_updated_at_ms)
  SELECT $1, delta.key, delta.value, $2, delta.last_updated_at_ms
  FROM delta
  WHERE delta.value IS NOT NULL
  ON CONFLICT (instance_id, key) DO UPDATE
  SET value = EXCLUDED.value,
      execution_id = EXCLUDED.execution_id,
      last_updated_at_ms = EXCLUDED.last_updated_at_ms
)
DELETE FROM {q}.kv_store s
USING delta
WHERE s.instance_id = $1 AND s.key = delta.key AND delta.value IS NULL",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

/// At the end of an execution, moves the delta into the store.
pub(crate) fn merge_delta(db: &Db, instance: &[u8], execution_id: Option<i64>) {
    db.query(&MERGE_DELTA, &[instance.into(), execution_id.into()]);
}

static VALUE: Statement = Statement {
    text: "
SELECT v.value
FROM (SELECT d.value, 1 AS rank FROM {q}.kv_delta d WHERE d.instance_id = $1 AND d.key = $2
      UNION ALL
      SELECT s.value, 2 FROM {q}.kv_store s WHERE s.instance_id = $1 AND s.key = $2) v
ORDER BY v.rank
LIMIT 1",
    parameters: &[TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// The value of one key; `None` if there is none.
pub(crate) fn value(db: &Db, instance: Option<Text>, key: Option<Text>) -> Option<TextBuf> {
    db.query(&VALUE, &[instance.into(), key.into()]).first()?.text_buf(1)
}

static ALL_VALUES: Statement = Statement {
    text: "
SELECT d.key, d.value FROM {q}.kv_delta d WHERE d.instance_id = $1 AND d.value IS NOT NULL
UNION ALL
SELECT s.key, s.value FROM {q}.kv_store s
WHERE s.instance_id = $1
  AND NOT EXISTS (SELECT FROM {q}.kv_delta d WHERE d.instance_id = s.instance_id AND d.key = s.key)",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Every key with its value.
pub(crate) fn all_values(db: &Db, result: &ResultSet, instance: Option<Text>) {
    db.query_into(result, &ALL_VALUES, &[instance.into()]);
}
