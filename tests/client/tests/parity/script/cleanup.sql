The end of a queue, from inside; nothing comes after it.

--# cleanup_refused
--!
CREATE VIEW mine AS SELECT instance_id FROM instances;
--!
BEGIN;
--: somebody_depends_on_a_table
SELECT cleanup_schema();
--!
ROLLBACK;
--!
DROP VIEW mine;

--# cleanup
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: nothing_is_left
SELECT cleanup_schema();
--: not_even_itself
SELECT cleanup_schema();
--: nor_a_table
SELECT count(*) FROM instances;
--: no_table_at_all
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace;
