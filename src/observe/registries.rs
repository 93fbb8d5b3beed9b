//! What the registry of each queue says of it: how it came to be, and in which layout.

use super::pass::{read_as, try_to_lock};
use crate::names::{Names, schema_is_safe_for_owner};
use crate::pg::result_set::ResultSet;
use crate::pg::spi::{self, Session};
use crate::pg::{relation_lock, subtransaction};
use core::ffi::CStr;
use pgrx::pg_sys;

const REGISTRIES: &CStr =
    c"SELECT n.nspname::text, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = '_duroxide_queue' AND c.relkind = 'r' ORDER BY n.nspname";

const INDEXES: &CStr = c"SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = $1 ORDER BY i.indexrelid";

/// The owner of a registry that the reader may read, and that runs nobody's code when it is read.
const OWNER: &str = concat!(
    "SELECT c.relowner
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_database d ON d.datname = current_database()
    WHERE c.oid = $1 AND c.relname = '_duroxide_queue' AND c.relkind = 'r' AND NOT c.relrowsecurity
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
      AND (",
    schema_is_safe_for_owner!(),
    ")
      AND (SELECT count(*) = 2 FROM pg_attribute a
           WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attgenerated = ''
             AND (a.attname, a.atttypid) IN (('origin', 'text'::regtype), ('layout', 'integer'::regtype)))
      AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
      AND NOT EXISTS (SELECT FROM pg_statistic_ext x WHERE x.stxrelid = c.oid)"
);

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
    if !relation_lock::try_to_read(registry) || !try_to_lock(&session, INDEXES, registry) {
        return;
    }
    let names = Names::of(queue);
    let rows = spi::run_once(&session, &names.fill(OWNER), &[registry.into()]);
    if let Some(owner) = rows.first().and_then(|row| row.oid(1)) {
        read_as(owner, &session, &names.fill(ROW), &[], result);
    }
}
