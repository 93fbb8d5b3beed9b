-- Takes away what sql/queue_additions.sql added.

DROP INDEX IF EXISTS {q}.orchestrator_queue_ready_idx, {q}.orchestrator_queue_leased_idx,
  {q}.worker_queue_ready_idx, {q}.worker_queue_leased_idx;
DROP TABLE {q}.dead_letters, {q}._duroxide_queue;
