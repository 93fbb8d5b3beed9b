//! The functions of schema `duroxide_queue`.

use super::required;

use crate::lifecycle;
use crate::pg::values::Text;
use pgrx::pg_extern;
use pgrx::pg_sys::panic::ErrorReport;

/// Makes a queue.
///
/// Errors: 3F000 the schema is missing and the caller may not make it; 42501 the schema is not the
/// caller's; 42710 there is a queue, or a duroxide-pg schema; 42P07 a name is taken; 42602, 42939 the
/// name cannot be that of a queue; 22004.
#[pg_extern(sql = false)]
fn create_queue(schema_name: Option<Text>) -> Result<(), ErrorReport> {
    Ok(lifecycle::create(required(schema_name, "schema_name")?.bytes())?)
}

/// Removes a created queue with its data.
///
/// Errors: 3F000, 42704 no queue there; 42501; 55000 the queue was adopted; 2BP01 others depend on it.
#[pg_extern(sql = false)]
fn drop_queue(schema_name: Option<Text>) -> Result<(), ErrorReport> {
    Ok(lifecycle::drop_queue(required(schema_name, "schema_name")?.bytes())?)
}

/// Takes over a duroxide-pg 0.1.38 schema, or gives a queue its functions back.
///
/// Errors: 3F000; 42501; 42710 the queue is whole already; 55000 the schema is at another migration
/// level, or not whole.
#[pg_extern(sql = false)]
fn adopt_queue(schema_name: Option<Text>) -> Result<(), ErrorReport> {
    Ok(lifecycle::adopt(required(schema_name, "schema_name")?.bytes())?)
}

/// Gives an adopted queue back.
///
/// Errors: 3F000, 42704; 42501; 55000 the queue was created, or holds dead letters.
#[pg_extern(sql = false)]
fn release_queue(schema_name: Option<Text>) -> Result<(), ErrorReport> {
    Ok(lifecycle::release(required(schema_name, "schema_name")?.bytes())?)
}

/// Gives a role the rights of a client.
///
/// Errors: 3F000, 42704 no such queue, or no such role; 42501.
#[pg_extern(sql = false)]
fn grant_client(schema_name: Option<Text>, role_name: Option<Text>) -> Result<(), ErrorReport> {
    let role = required(role_name, "role_name")?;
    Ok(lifecycle::grant(required(schema_name, "schema_name")?.bytes(), role.bytes())?)
}

/// Takes the rights of a client back.
///
/// Errors: as `grant_client`.
#[pg_extern(sql = false)]
fn revoke_client(schema_name: Option<Text>, role_name: Option<Text>) -> Result<(), ErrorReport> {
    let role = required(role_name, "role_name")?;
    Ok(lifecycle::revoke(required(schema_name, "schema_name")?.bytes(), role.bytes())?)
}

/// Puts a dead letter back.
///
/// Errors: P0002 no such dead letter; 22P02, 22P05, 22003 its text can still not be delivered; 3F000, 42704,
/// 42501; 22004.
#[pg_extern(sql = false)]
fn redrive(schema_name: Option<Text>, id: Option<i64>) -> Result<(), ErrorReport> {
    let id = required(id, "id")?;
    Ok(lifecycle::redrive(required(schema_name, "schema_name")?.bytes(), id)?)
}

/// Removes a dead letter.
///
/// Errors: P0002 no such dead letter; 3F000, 42704; 42501; 22004.
#[pg_extern(sql = false)]
fn discard(schema_name: Option<Text>, id: Option<i64>) -> Result<(), ErrorReport> {
    let id = required(id, "id")?;
    Ok(lifecycle::discard(required(schema_name, "schema_name")?.bytes(), id)?)
}
