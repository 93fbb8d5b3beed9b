//! What the registry of each queue says of it: how it came to be, and in which layout.

use super::pass::SETTINGS;
use crate::names::Names;
use crate::pg::result_set::ResultSet;
use crate::pg::spi::{self, Session};
use crate::pg::{guc, identity, planner, relation_lock, subtransaction};
use core::ffi::CStr;
use pgrx::pg_sys;

const REGISTRIES: &CStr =
    c"SELECT n.nspname::text, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = '_duroxide_queue' AND c.relkind = 'r' ORDER BY n.nspname";

const INDEXES: &CStr = c"SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = $1 ORDER BY i.indexrelid";

/// The owner of a registry that the reader may read, and that runs nobody's code when it is read. Whoever owns the schema
/// could put another table in its place, so he must have the rights that it is read with; but nobody is kept from his own.
const OWNER: &CStr = c"SELECT c.relowner
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_database d ON d.datname = current_database()
    WHERE c.oid = $1 AND c.relname = '_duroxide_queue' AND c.relkind = 'r' AND NOT c.relrowsecurity
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
      AND (c.relowner = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user AND NOT r.rolsuper)
           OR pg_has_role(CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END,
                          c.relowner, 'USAGE'))
      AND (SELECT count(*) = 2 FROM pg_attribute a
           WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attgenerated = ''
             AND (a.attname, a.atttypid) IN (('origin', 'text'::regtype), ('layout', 'integer'::regtype)))
      AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
      AND NOT EXISTS (SELECT FROM pg_statistic_ext x WHERE x.stxrelid = c.oid)";

const ROW: &str = "SELECT {name}::name, q.origin, q.layout FROM ONLY {q}._duroxide_queue q LIMIT 1";

/// Hands over name, origin and layout of each queue whose registry the reader may read; of one that is locked, or that could run
/// its owner's code, nothing. As in [`super::pass`], each is read in a subtransaction that is undone.
pub(crate) fn registries(result: &ResultSet) {
    let registries: Vec<(Vec<u8>, pg_sys::Oid)> = {
        let session = Session::open();
        let rows = spi::run_once(&session, REGISTRIES, &[]);
        rows.iter().filter_map(|row| Some((row.text(1)?.to_vec(), row.oid(2)?))).collect()
    };
    for (queue, registry) in registries {
        pgrx::check_for_interrupts!();
        subtransaction::undone(|| read(&queue, registry, result));
    }
}

fn read(queue: &[u8], registry: pg_sys::Oid, result: &ResultSet) {
    let session = Session::open();
    let is_free = relation_lock::try_to_read(registry)
        && spi::run_once(&session, INDEXES, &[registry.into()])
            .iter()
            .filter_map(|row| row.oid(1))
            .all(relation_lock::try_to_read);
    if !is_free {
        return;
    }
    let Some(owner) = spi::run_once(&session, OWNER, &[registry.into()]).first().and_then(|row| row.oid(1))
    else {
        return;
    };
    identity::as_role(owner, || {
        guc::with_settings(SETTINGS, || {
            planner::during_call(|| {
                result.append(&spi::run_once(&session, &Names::of(queue).fill(ROW), &[]));
            });
        });
    });
}
