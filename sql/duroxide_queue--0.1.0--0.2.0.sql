\echo Use "ALTER EXTENSION duroxide_queue UPDATE TO '0.2.0'" to load this file. \quit

/* From 0.1.0 to 0.2.0. Frozen once CHANGELOG.md gives 0.2.0 a date; until then it has to make of 0.1.0 what a fresh
   install of sql/duroxide_queue.sql makes. */
