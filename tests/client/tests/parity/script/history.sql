History: read as it was stored, and appended.

--# history
--!
INSERT INTO executions VALUES ('a', 1, 'ContinuedAsNew', NULL, :at), ('a', 3, 'Running', NULL, :at);
INSERT INTO history VALUES ('a', 1, 2, 'T', '{"b": 2,  "a": 1.00}', :at), ('a', 1, 1, 'T', 'not json', :at), ('a', 3, 10, 'T', '"ten"', :at), ('a', 3, 9, 'T', '"nine"', :at), ('b', 1, 1, 'T', '"no execution"', :at), ('b', 2, 1, 'T', '"nor here"', :at);
--: nulls nulls
SELECT * FROM fetch_history(
  p_instance_id => 'a'
);
--: nulls_of_execution nulls
SELECT * FROM fetch_history_with_execution(
  p_instance_id => 'a',
  p_execution_id => 1
);
--: latest
SELECT * FROM fetch_history('a');
--: first
SELECT * FROM fetch_history_with_execution('a', 1);
--: missing_execution
SELECT * FROM fetch_history_with_execution('a', 2);
--: without_executions
SELECT * FROM fetch_history('b');
--: of_nobody
SELECT * FROM fetch_history('nobody');
--: of_nobodys_execution
SELECT * FROM fetch_history_with_execution('', 1);

--# append
--: nulls nulls
SELECT append_history(
  p_instance_id => 'a',
  p_execution_id => 1,
  p_events => :events(1,2)
);
--: nothing
SELECT append_history('a', 1, '[]');
--: events
SELECT append_history('a', 1, :events(1,2));
--: events_that_are_there
SELECT append_history('a', 1, '[{"event_id":2,"event_type":"U","event_data":"\"other\""},{"event_id":3,"event_type":"U","event_data":"\"new\""}]');
--: zero
SELECT append_history('a', 1, '[{"event_id":0,"event_type":"U","event_data":"1"}]');
--: below_zero
SELECT append_history('a', 1, '[{"event_id":4,"event_type":"U","event_data":"1"},{"event_id":-1,"event_type":"U","event_data":"1"}]');
--: without_id
SELECT append_history('a', 1, '[{"event_type":"U","event_data":"1"}]');
--: id_of_text
SELECT append_history('a', 1, '[{"event_id":"x","event_type":"U","event_data":"1"}]');
--: of_null
SELECT append_history('a', 1, 'null');
--: of_a_scalar
SELECT append_history('a', 1, '5');
--: of_an_object
SELECT append_history('a', 1, '{}');
--: of_scalars
SELECT append_history('a', 1, '[5]');
--: without_type
SELECT append_history('a', 1, '[{"event_id":9,"event_data":"1"}]');
--: no_json
SELECT append_history('a', 1, '[{"event_id":9,"event_type":"U","event_data":"not json"}]');
