-- What a database for fuzzing has beside its queues.

CREATE EXTENSION duroxide_queue;

CREATE SCHEMA empty;
CREATE SCHEMA occupied;
CREATE TABLE occupied.history (x integer);

-- Values as they lie in a table: short, compressed, and kept elsewhere.
CREATE TABLE public.stored (id integer, t text, j jsonb, a text[]);
ALTER TABLE public.stored ALTER j SET STORAGE EXTERNAL;
INSERT INTO public.stored VALUES
  (1, 'i1',
   (SELECT jsonb_agg(jsonb_build_object('event_id', n, 'event_type', 'T', 'event_data', '{}')) FROM generate_series(1, 500) n),
   (SELECT array_agg(md5(n::text)) FROM generate_series(1, 3000) n)),
  (2, repeat('y', 300000), to_jsonb(repeat('z', 100000)), ARRAY[repeat('w', 100000), 'i2']),
  (3, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 2000) n), NULL, NULL),
  (4, '{"StartOrchestration":{"instance":"i1","orchestration":"O","input":"' || repeat('in', 100000) || '"}}', NULL, NULL);
