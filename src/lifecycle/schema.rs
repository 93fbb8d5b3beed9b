//! A schema as the management functions see it: what it is called, what it holds, who may change it.

use crate::error::{Error, Result};
use crate::names::{Names, schema_is_safe_for_owner};
use crate::pg::advisory::Key;
use crate::pg::identity;
use crate::pg::spi::{self, Rows, Session, Value};
use pgrx::pg_sys;
use std::ffi::CString;

/// Version of what the extension adds to a schema.
pub(super) const LAYOUT: i32 = 1;

/// Every table that a queue has, the client's and ours.
pub(super) const TABLES: &str = "_duroxide_migrations _duroxide_queue dead_letters executions history \
  instance_locks instances kv_delta kv_store orchestrator_queue sessions worker_queue";

/// A schema by name, open for changes in one call.
pub(super) struct Schema {
    name: Vec<u8>,
    names: Names,
    session: Session,
}

/// What `_duroxide_queue` says of a queue.
pub(super) struct Registered {
    pub(super) origin: String,
    pub(super) made_schema: bool,
}

impl Schema {
    /// Takes a name for what it is: bare, and possibly in need of quotes. Calls on one schema wait
    /// for each other, so that what is checked stays true until the end of the transaction.
    pub(super) fn open(name: &[u8]) -> Result<Self> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        if name.is_empty() || name.len() > 63 {
            return Err(Error::InvalidSchemaName(shown()));
        }
        if name.starts_with(b"pg_") || name == b"information_schema" || name == b"duroxide_queue" {
            return Err(Error::ReservedSchema(shown()));
        }
        let schema = Schema { name: name.to_vec(), names: Names::of(name), session: Session::open() };
        let key = schema.one_int8("SELECT pg_catalog.hashtext('duroxide_queue.lifecycle.' || $1)::bigint");
        Key(key.unwrap_or(0)).lock();
        Ok(schema)
    }

    pub(super) fn with_role(self, role: &[u8]) -> Self {
        Schema { names: self.names.with_role(role), ..self }
    }

    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Runs a script with the placeholders of [`Names::fill`].
    pub(super) fn run_script(&self, text: &str) {
        spi::run_script(&self.session, &self.names.fill(text));
    }

    /// Runs a statement as it stands.
    pub(super) fn run_verbatim(&self, text: &[u8]) {
        let text = CString::new(text).expect("a text of PostgreSQL holds no NUL byte");
        spi::run_script(&self.session, &text);
    }

    /// Runs a statement around the quoted name of the schema.
    pub(super) fn run_verbatim_on(&self, before: &[u8], after: &[u8], rest: &[u8]) {
        self.run_verbatim(&[before, self.names.fill("{q}").as_bytes(), after, rest].concat());
    }

    /// Runs one statement whose `$1` is the bare name of the schema.
    pub(super) fn query(&self, text: &str) -> Rows<'_> {
        self.query_with(text, &[])
    }

    /// The same with more arguments, from `$2` on.
    pub(super) fn query_with(&self, text: &str, more: &[Value<'_>]) -> Rows<'_> {
        let mut arguments = vec![Value::Text(&self.name)];
        arguments.extend_from_slice(more);
        spi::run_once(&self.session, &self.names.fill(text), &arguments)
    }

    fn one_int8(&self, text: &str) -> Option<i64> {
        self.query(text).first().and_then(|row| row.int8(1))
    }

    pub(super) fn one_bool(&self, text: &str) -> bool {
        self.query(text).first().and_then(|row| row.bool(1)) == Some(true)
    }

    pub(super) fn exists(&self) -> bool {
        self.one_bool("SELECT EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = $1)")
    }

    /// Refuses a caller who may not create things in the schema.
    pub(super) fn require_create(&self) -> Result<()> {
        if !self.exists() {
            return Err(Error::NoSuchSchema(self.shown()));
        }
        if self.one_bool("SELECT has_schema_privilege($1, 'CREATE') AND has_schema_privilege($1, 'USAGE')") {
            return Ok(());
        }
        Err(Error::NotAllowed { schema: self.shown(), needs: "CREATE and USAGE are" })
    }

    /// Refuses a caller who does not own the queue's tables and functions.
    fn require_ownership(&self) -> Result<()> {
        let rows = self.query_with(
            "SELECT o.kind || ' ' || $1 || '.' || o.name
             FROM (SELECT 'table' AS kind, c.relname AS name, c.relowner AS owner
                   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
                     AND c.relname = ANY (string_to_array($2, ' '))
                   UNION ALL
                   SELECT 'function', p.proname, p.proowner
                   FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = $1 AND p.probin = '$libdir/duroxide_queue') o
             WHERE NOT pg_has_role(o.owner, 'USAGE')
             ORDER BY 1 LIMIT 1",
            &[TABLES.as_bytes().into()],
        );
        match rows.first().and_then(|row| row.text(1)) {
            None => Ok(()),
            Some(object) => Err(Error::NotOwner { object: String::from_utf8_lossy(object).into_owned() }),
        }
    }

    /// The one owner of the queue's tables, whose rights the caller must have. A schema with tables of
    /// several owners is refused: with a superuser's table beside them, one owner's triggers could
    /// come to run with the other's rights. So is one that [`schema_is_safe_for_owner`] refuses.
    pub(super) fn owner(&self) -> Result<pg_sys::Oid> {
        self.require_ownership()?;
        let rows = self.query_with(
            concat!(
                "SELECT (array_agg(c.relowner))[1], count(DISTINCT c.relowner),
                    coalesce(min(c.relname::text) FILTER (WHERE c.relkind NOT IN ('r', 'p')), ''), bool_and(",
                schema_is_safe_for_owner!(),
                ")
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             JOIN pg_database d ON d.datname = current_database()
             WHERE n.nspname = $1 AND c.relname = ANY (string_to_array($2, ' '))"
            ),
            &[TABLES.as_bytes().into()],
        );
        let row = rows.first().expect("an aggregate returns one row");
        let incomplete = |part: String| Err(Error::IncompleteSchema { schema: self.shown(), part });
        match (row.oid(1), row.int8(2), row.text(3)) {
            (_, _, Some(other)) if !other.is_empty() => {
                incomplete(format!("{} is not a table", String::from_utf8_lossy(other)))
            }
            (Some(_), Some(1), _) if row.bool(4) != Some(true) => Err(Error::SchemaOfAnother(self.shown())),
            (Some(owner), Some(1), _) => Ok(owner),
            (None, ..) => incomplete("it has no table".into()),
            _ => incomplete("its tables belong to different owners".into()),
        }
    }

    /// Runs what touches the queue's tables with their owner's rights, so that no trigger, cast or
    /// policy of the owner's runs with more.
    pub(super) fn as_owner<R>(&self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        identity::as_role(self.owner()?, body)
    }

    /// Whether the schema has a plain table of this name.
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.query_with(
            "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                            WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p'))",
            &[table.as_bytes().into()],
        )
        .first()
        .and_then(|row| row.bool(1))
            == Some(true)
    }

    /// What the queue's registry says; `None` where there is none. With the owner's rights only.
    fn registered(&self) -> Option<Registered> {
        if !self.has_table("_duroxide_queue") {
            return None;
        }
        let rows =
            self.query("SELECT q.origin, q.made_schema FROM {q}._duroxide_queue q WHERE $1 IS NOT NULL");
        let row = rows.first()?;
        Some(Registered {
            origin: String::from_utf8_lossy(row.text(1)?).into_owned(),
            made_schema: row.bool(2) == Some(true),
        })
    }

    /// Refuses a schema that holds no queue, or one that is not the caller's; asks the catalog only.
    pub(super) fn require_owned_queue(&self) -> Result<()> {
        if !self.exists() {
            return Err(Error::NoSuchSchema(self.shown()));
        }
        if !self.one_bool("SELECT has_schema_privilege($1, 'USAGE')") {
            return Err(Error::NotAllowed { schema: self.shown(), needs: "USAGE is" });
        }
        if !self.has_table("_duroxide_queue") {
            return Err(Error::NoQueue(self.shown()));
        }
        self.owner().map(drop)
    }

    /// The registry of a queue that must be there, in a schema that must be there.
    pub(super) fn require_queue(&self) -> Result<Registered> {
        self.registry()?.ok_or_else(|| Error::NoQueue(self.shown()))
    }

    /// The same, but the table may be empty, as it is after a restore of the schema without its data.
    pub(super) fn registry(&self) -> Result<Option<Registered>> {
        self.require_owned_queue()?;
        self.as_owner(|| {
            if !self.one_bool(
                "SELECT count(*) = 4
                 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = $1 AND c.relname = '_duroxide_queue'
                   AND (a.attname, a.atttypid) IN (('origin', 'text'::regtype), ('layout', 'integer'::regtype),
                                                   ('made_schema', 'boolean'::regtype),
                                                   ('replaced_functions', 'text[]'::regtype))",
            ) {
                let part = "_duroxide_queue is not the table that this extension makes".into();
                return Err(Error::IncompleteSchema { schema: self.shown(), part });
            }
            Ok(self.registered())
        })
    }
}
