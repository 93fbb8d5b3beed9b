//! Names of a queue's schema as they stand in SQL, quoted whatever they hold.

use std::ffi::CString;

/// A condition on a table `c` of a schema `n` in a database `d`: whoever owns the schema may drop the table and put another
/// in its place at any moment, so he must have the rights of the table's owner; but nobody without more rights is kept
/// from tables of his own.
macro_rules! schema_is_safe_for_owner {
    () => {
        "c.relowner = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user AND NOT r.rolsuper)
         OR pg_has_role(CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END,
                        c.relowner, 'USAGE')"
    };
}
pub(crate) use schema_is_safe_for_owner;

/// A schema's name, and a role's where one is given, ready to be put into statements. In bytes, since a database may have another
/// encoding than UTF-8.
pub(crate) struct Names {
    identifier: Vec<u8>,
    literal: Vec<u8>,
    key_prefix: Vec<u8>,
    dead_letters: Vec<u8>,
    role: Vec<u8>,
}

impl Names {
    pub(crate) fn of(schema: &[u8]) -> Self {
        let mut key_prefix = schema.to_vec();
        key_prefix.push(b'.');
        Names {
            identifier: identifier(schema),
            literal: literal(schema),
            key_prefix: literal(&key_prefix),
            dead_letters: literal(&[&identifier(schema), b".dead_letters".as_slice()].concat()),
            role: Vec::new(),
        }
    }

    /// The same with a role, for `{role}`.
    pub(crate) fn with_role(self, role: &[u8]) -> Self {
        Names { role: identifier(role), ..self }
    }

    /// Puts the names in: `{q}` the identifier, `{name}` the name as a literal, `{key}` the literal
    /// that advisory keys of the schema's instances begin with, `'<schema>.'`, `{dead_letters}` the
    /// name of that table as a literal, and `{role}` the role.
    pub(crate) fn fill(&self, template: &str) -> CString {
        let mut filled = Vec::with_capacity(template.len() + 64);
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            filled.extend_from_slice(&rest.as_bytes()[..start]);
            let placeholder = &rest[start..];
            let (name, length): (&[u8], usize) = if placeholder.starts_with("{q}") {
                (&self.identifier, 3)
            } else if placeholder.starts_with("{name}") {
                (&self.literal, 6)
            } else if placeholder.starts_with("{key}") {
                (&self.key_prefix, 5)
            } else if placeholder.starts_with("{role}") {
                (&self.role, 6)
            } else if placeholder.starts_with("{dead_letters}") {
                (&self.dead_letters, 14)
            } else {
                (b"{", 1)
            };
            filled.extend_from_slice(name);
            rest = &placeholder[length..];
        }
        filled.extend_from_slice(rest.as_bytes());
        CString::new(filled).expect("neither statements nor names hold a NUL byte")
    }
}

/// Quotes an identifier, needed or not: which words need it changes between versions.
fn identifier(name: &[u8]) -> Vec<u8> {
    quoted(name, b'"')
}

/// Quotes a literal, in the form that does not depend on `standard_conforming_strings`.
fn literal(value: &[u8]) -> Vec<u8> {
    let quoted = quoted(value, b'\'');
    if !value.contains(&b'\\') {
        return quoted;
    }
    let mut escaped = vec![b'E'];
    for byte in quoted {
        if byte == b'\\' {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    escaped
}

/// A schema as a message shows it in an SQL example: quoted where it needs it.
pub(crate) fn shown_identifier(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A schema as the argument of a function in an SQL example.
pub(crate) fn shown_literal(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

fn quoted(value: &[u8], quote: u8) -> Vec<u8> {
    let mut result = vec![quote];
    for &byte in value {
        if byte == quote {
            result.push(quote);
        }
        result.push(byte);
    }
    result.push(quote);
    result
}

#[cfg(test)]
mod tests {
    use super::Names;

    fn filled(schema: &str, template: &str) -> String {
        Names::of(schema.as_bytes()).fill(template).into_string().unwrap()
    }

    #[test]
    fn placeholders_are_quoted() {
        assert_eq!(filled("app", "{q}.t {key} {name} {x}"), "\"app\".t 'app.' 'app' {x}");
        assert_eq!(filled("My \"Q\".1", "{q}"), "\"My \"\"Q\"\".1\"");
        assert_eq!(filled("it's", "{key}"), "'it''s.'");
        assert_eq!(filled("a\\b", "{name}"), "E'a\\\\b'");
    }

    /// A name may hold a line break, which would end a comment and let the rest run as SQL.
    #[test]
    fn no_script_has_a_placeholder_in_a_comment() {
        for script in [
            include_str!("../sql/queue_additions.sql"),
            include_str!("../sql/queue_additions_drop.sql"),
            include_str!("../sql/queue_comments.sql"),
            include_str!("../sql/queue_drop.sql"),
            include_str!("../sql/queue_functions.sql"),
            include_str!("../sql/queue_grant.sql"),
            include_str!("../sql/queue_revoke.sql"),
            include_str!("../sql/queue_tables.sql"),
        ] {
            assert!(!script.contains("/*"), "block comments are not looked at: {script}");
            for comment in script.lines().filter_map(|line| line.split_once("--")) {
                assert!(!comment.1.contains('{'), "{}--{}", comment.0, comment.1);
            }
        }
    }

    #[test]
    fn a_name_that_looks_like_a_placeholder_is_left_alone() {
        assert_eq!(filled("{key}", "{q}.t"), "\"{key}\".t");
    }
}
