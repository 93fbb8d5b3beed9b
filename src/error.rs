//! Every error that this extension raises by itself, with its SQLSTATE, text and hint.
//!
//! Texts are part of the interface: duroxide-pg looks for phrases in them. Errors of PostgreSQL
//! that pass through (23505, 40001, 40P01, 57014 and so on) keep their own code and are not here.

use crate::names::{shown_identifier, shown_literal};
use crate::pg::encoding;
use crate::pg::json::Refusal;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::borrow::Cow;

/// What the functions of this crate return.
pub(crate) type Result<T, E = Error> = core::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum Error {
    /// The lease of an instance is gone, expired or another's (ack, abandon).
    InvalidLockToken,
    /// The lease of an instance cannot be renewed.
    LeaseLost,
    /// The lease of a work item cannot be renewed.
    WorkItemLeaseLost,
    /// The work item of this lock token is not there to be abandoned.
    WorkItemNotHeld,
    /// The work item of this lock token is not there to be acknowledged.
    WorkItemGone,
    /// A completion came without what it is stored with.
    CompletionNeeds(&'static str),
    /// An event of `append_history` has no positive id.
    InvalidEventId,
    /// `get_parent_id` of an instance that is not there.
    InstanceNotFound(Vec<u8>),
    /// `prune_executions` of an instance that is not there.
    PruneInstanceNotFound(Vec<u8>),
    /// `delete_instances_atomic` without force, with an instance that is still at work.
    InstanceRunning(Vec<u8>),
    /// `delete_instances_atomic` would leave a child without its parent.
    Orphan(Vec<u8>),

    /// NULL where a value is needed.
    NullArgument(&'static str),
    /// A time or a lease that an i64 of milliseconds cannot hold.
    NumberOutOfRange(&'static str),
    /// A time that `timestamptz` cannot hold.
    TimeOutOfRange(i64),
    /// A text that could never be delivered.
    Undeliverable { argument: &'static str, refusal: Refusal },

    /// Names a schema that is not there.
    NoSuchSchema(String),
    /// Names a schema that is not there and that the caller may not make.
    NoSchemaToCreate(String),
    /// A schema that no queue may live in.
    ReservedSchema(String),
    /// A schema name that no schema can have.
    InvalidSchemaName(String),
    /// The caller may not do this to the schema.
    NotAllowed { schema: String, needs: &'static str },
    /// The owner of a schema could put tables of his own in the place of the queue's.
    SchemaOfAnother(String),
    /// The functions that adoption replaced were of a schema of another name.
    AdoptedUnderAnotherName(String),
    /// A function to be replaced belongs to somebody else.
    NotOwner { object: String },
    /// The schema holds a queue of this extension already.
    QueueExists(String),
    /// The schema holds a duroxide-pg schema, to be adopted rather than created.
    DuroxidePgExists(String),
    /// The schema holds something by a name that a queue needs.
    NameTaken { schema: String, name: String },
    /// Names a role that is not there.
    NoSuchRole(String),
    /// The schema holds no queue.
    NoQueue(String),
    /// The queue came to be in the other way.
    WrongOrigin { schema: String, origin: String },
    /// The schema is not at the migration level of duroxide-pg 0.1.38.
    WrongLevel { schema: String, found: String },
    /// The schema lacks a part of a duroxide-pg 0.1.38 schema, or has it otherwise.
    IncompleteSchema { schema: String, part: String },
    /// The function was dropped while a query that calls it was running.
    FunctionGone,
    /// The queue's schema was renamed or dropped during the call.
    QueueRenamed,
    /// The transaction sees an instance as it was before others changed it.
    OldSnapshot(Vec<u8>),
    /// A transaction that must not commit after the end of a lease cannot be prepared for a commit at any time.
    AcknowledgedAndPrepared,
    /// A column has another type than every version of this extension has made it with.
    UnexpectedType { found: pg_sys::Oid, expected: pg_sys::Oid },
    /// There is no dead letter of this id.
    NoDeadLetter { schema: String, id: i64 },
    /// Dead letters would be lost.
    DeadLettersLeft { schema: String, count: i64 },
}

impl Error {
    fn sqlstate(&self) -> PgSqlErrorCode {
        use PgSqlErrorCode as Code;
        match self {
            Error::InvalidLockToken
            | Error::LeaseLost
            | Error::WorkItemLeaseLost
            | Error::WorkItemNotHeld
            | Error::WorkItemGone
            | Error::CompletionNeeds(_)
            | Error::InvalidEventId
            | Error::InstanceNotFound(_)
            | Error::PruneInstanceNotFound(_)
            | Error::InstanceRunning(_)
            | Error::Orphan(_) => Code::ERRCODE_RAISE_EXCEPTION,
            Error::NullArgument(_) => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            Error::NumberOutOfRange(_) => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            Error::TimeOutOfRange(_) => Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
            Error::Undeliverable { refusal, .. } => refusal.code,
            Error::NoSuchSchema(_) | Error::NoSchemaToCreate(_) => Code::ERRCODE_INVALID_SCHEMA_NAME,
            Error::ReservedSchema(_) => Code::ERRCODE_RESERVED_NAME,
            Error::InvalidSchemaName(_) => Code::ERRCODE_INVALID_NAME,
            Error::NotAllowed { .. } | Error::NotOwner { .. } | Error::SchemaOfAnother(_) => {
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE
            }
            Error::QueueExists(_) | Error::DuroxidePgExists(_) => Code::ERRCODE_DUPLICATE_OBJECT,
            Error::NameTaken { .. } => Code::ERRCODE_DUPLICATE_TABLE,
            Error::NoQueue(_) | Error::NoSuchRole(_) => Code::ERRCODE_UNDEFINED_OBJECT,
            Error::FunctionGone => Code::ERRCODE_UNDEFINED_FUNCTION,
            Error::QueueRenamed | Error::OldSnapshot(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Error::AcknowledgedAndPrepared => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Error::UnexpectedType { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            Error::NoDeadLetter { .. } => Code::ERRCODE_NO_DATA_FOUND,
            Error::WrongOrigin { .. }
            | Error::WrongLevel { .. }
            | Error::IncompleteSchema { .. }
            | Error::AdoptedUnderAnotherName(_)
            | Error::DeadLettersLeft { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        }
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Error::InvalidLockToken => "Invalid lock token".into(),
            Error::LeaseLost => "Lock token invalid, expired, or already released".into(),
            Error::WorkItemLeaseLost => "Lock token invalid, expired, or already acked".into(),
            Error::WorkItemNotHeld => "Invalid lock token or already acked".into(),
            Error::WorkItemGone => "Worker queue item not found or already processed".into(),
            Error::CompletionNeeds(argument) => {
                format!("{argument} is required when p_completion_json is provided").into()
            }
            Error::InvalidEventId => "Invalid event_id in append_history".into(),
            Error::InstanceNotFound(id) => format!("Instance not found: {}", shown(id)).into(),
            Error::PruneInstanceNotFound(id) => format!("Instance {} not found", shown(id)).into(),
            Error::InstanceRunning(id) => {
                format!("Instance {} is Running. Use force=true to delete.", shown(id)).into()
            }
            Error::Orphan(id) => format!(
                "Orphan detected: instance {} has parent in delete list but is not included",
                shown(id)
            )
            .into(),
            Error::NullArgument(argument) => format!("{argument} must not be null").into(),
            Error::NumberOutOfRange(what) => format!("{what} is out of range").into(),
            Error::TimeOutOfRange(ms) => format!("timestamp out of range: {ms} ms of the Unix epoch").into(),
            Error::Undeliverable { argument, refusal } => {
                format!("{argument} could never be delivered: {}", refusal.shown()).into()
            }
            Error::NoSuchSchema(schema) | Error::NoSchemaToCreate(schema) => {
                format!("schema \"{schema}\" does not exist").into()
            }
            Error::ReservedSchema(schema) => format!("schema \"{schema}\" cannot hold a queue").into(),
            Error::InvalidSchemaName(schema) => format!("\"{schema}\" cannot be the name of a schema").into(),
            Error::NotAllowed { schema, needs } => {
                format!("permission denied for schema \"{schema}\": {needs} needed").into()
            }
            Error::SchemaOfAnother(schema) => {
                format!("the owner of schema \"{schema}\" has not the rights of the owner of its tables")
                    .into()
            }
            Error::AdoptedUnderAnotherName(schema) => {
                format!("queue \"{schema}\" was adopted under another name").into()
            }
            Error::NotOwner { object } => format!("must be owner of {object}").into(),
            Error::QueueExists(schema) => format!("schema \"{schema}\" holds a queue already").into(),
            Error::DuroxidePgExists(schema) => {
                format!("schema \"{schema}\" holds tables of duroxide-pg already").into()
            }
            Error::NameTaken { schema, name } => {
                format!("schema \"{schema}\" holds something named \"{name}\" already").into()
            }
            Error::NoSuchRole(role) => format!("role \"{role}\" does not exist").into(),
            Error::NoQueue(schema) => format!("schema \"{schema}\" holds no queue").into(),
            Error::WrongOrigin { schema, origin } => format!("queue \"{schema}\" was {origin}").into(),
            Error::WrongLevel { schema, found } => {
                format!("schema \"{schema}\" is not at the migration level of duroxide-pg 0.1.38: {found}")
                    .into()
            }
            Error::IncompleteSchema { schema, part } => {
                format!("schema \"{schema}\" is not a whole duroxide-pg 0.1.38 schema: {part}").into()
            }
            Error::FunctionGone => "the function does not exist any more".into(),
            Error::QueueRenamed => "the queue was renamed or dropped during the call".into(),
            Error::OldSnapshot(id) => format!(
                "could not serialize access: instance {} has changed since the transaction's snapshot",
                shown(id)
            )
            .into(),
            Error::AcknowledgedAndPrepared => {
                "cannot PREPARE a transaction that has acknowledged a turn".into()
            }
            Error::UnexpectedType { found, expected } => format!(
                "a column of the queue is of type {}, where type {} is expected",
                found.to_u32(),
                expected.to_u32()
            )
            .into(),
            Error::NoDeadLetter { schema, id } => {
                format!("queue \"{schema}\" has no dead letter {id}").into()
            }
            Error::DeadLettersLeft { schema, count } => {
                format!("queue \"{schema}\" still holds {count} dead letters").into()
            }
        }
    }

    fn hint(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Error::NullArgument(argument) if argument.starts_with("p_") => "A lease or a decision that is NULL would lose work; pass a value.".into(),
            Error::NoSuchSchema(_) => {
                "Pass the bare name of the schema, as pg_namespace shows it, without quotes.".into()
            }
            Error::NoSchemaToCreate(_) => {
                "Making it takes the right CREATE on the database; ask for that, or for the schema.".into()
            }
            Error::ReservedSchema(_) => "Choose a schema of your own, for example \"app\".".into(),
            Error::InvalidSchemaName(_) => {
                "A name has 1 to 63 bytes. Pass it bare, without quotes; they are added where needed.".into()
            }
            Error::NotAllowed { schema, .. } => {
                format!("Ask the owner of \"{schema}\", or of the database, to grant it, or choose a schema of your own.")
                    .into()
            }
            Error::SchemaOfAnother(_) => {
                "Whoever owns the schema could put tables of his own in their place: give him the tables, or their owner the schema.".into()
            }
            Error::AdoptedUnderAnotherName(schema) => format!(
                "Its functions would come back under that name: SELECT replaced_functions FROM {}._duroxide_queue shows it. Rename the schema back, release it, and rename it then.",
                shown_identifier(schema)
            )
            .into(),
            Error::NotOwner { .. } => "Let the owner of the schema's objects make this call.".into(),
            Error::QueueExists(schema) => {
                let name = shown_literal(schema);
                format!(
                    "SELECT * FROM duroxide_queue.queues shows it; duroxide_queue.drop_queue({name}) removes a created one, release_queue({name}) gives an adopted one back."
                )
                .into()
            }
            Error::DuroxidePgExists(schema) => {
                format!("SELECT duroxide_queue.adopt_queue({}) takes it over, data and all.", shown_literal(schema)).into()
            }
            Error::NameTaken { .. } => "Choose an empty schema.".into(),
            Error::NoQueue(schema) => {
                format!(
                    "SELECT duroxide_queue.create_queue({}) makes one; the view duroxide_queue.queues lists them.",
                    shown_literal(schema)
                )
                .into()
            }
            Error::WrongOrigin { origin, .. } if origin == "created" => {
                "duroxide_queue.drop_queue() removes a created queue.".into()
            }
            Error::WrongOrigin { .. } => "duroxide_queue.release_queue() gives an adopted queue back.".into(),
            Error::WrongLevel { .. } => {
                "Open the schema once with duroxide-pg 0.1.38 under ApplyAll, or use the version of this extension that fits."
                    .into()
            }
            Error::IncompleteSchema { .. } => {
                "Compare it with a schema that duroxide-pg 0.1.38 made, and repair it first.".into()
            }
            Error::FunctionGone => "Its queue was dropped while the query was running.".into(),
            Error::QueueRenamed => "Nothing was changed; call again under the name that the queue has now.".into(),
            Error::OldSnapshot(_) => "Try the transaction again, or make the call at READ COMMITTED.".into(),
            Error::AcknowledgedAndPrepared => {
                "The lease may end before COMMIT PREPARED; commit in one phase.".into()
            }
            Error::UnexpectedType { .. } => "Give the column its type back; pg_type shows which one by its oid.".into(),
            Error::NoDeadLetter { schema, .. } => {
                format!("SELECT id, reason FROM {}.dead_letters shows those that there are.", shown_identifier(schema)).into()
            }
            Error::DeadLettersLeft { .. } => {
                "Redrive or discard them first; they would be lost with their table.".into()
            }
            _ => return None,
        })
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        let report =
            ErrorReport::new(error.sqlstate(), encoding::sendable(error.message()), "duroxide_queue");
        match error.hint() {
            Some(hint) => report.set_hint(encoding::sendable(hint)),
            None => report,
        }
    }
}

/// An id as text. One that is not UTF-8 is shown with replacement characters.
fn shown(id: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(id)
}
