//! The functions that there are to call, as the catalog shows them: none is forgotten.

use duroxide_queue_tests::outcome;
use sqlx::postgres::PgConnection;

/// A function with the names and types of its arguments.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its schema, quoted.
    pub schema: String,
    pub name: String,
    pub arguments: Vec<Argument>,
    /// How many of the last ones may be left away.
    pub optional: usize,
    /// Whether it takes part in how a queue comes to be and ends.
    pub manages: bool,
}

impl Function {
    /// Whether its name promises to write nothing.
    pub fn only_reads(&self) -> bool {
        ["get_", "list_", "latest_", "fetch_history", "readable_", "queue_problem", "why_", "stuck"]
            .iter()
            .any(|start| self.name.starts_with(start))
    }
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub sql_type: String,
}

/// The 32 functions of each of these queues, and those that manage queues.
pub async fn functions(session: &mut PgConnection, queues: &[&str]) -> Vec<Function> {
    let mut functions = Vec::new();
    for queue in queues {
        let found = in_schema(session, queue).await;
        assert_eq!(found.len(), 32, "functions of queue {queue}");
        functions.extend(found);
    }
    let managing = in_schema(session, "duroxide_queue").await;
    assert!(managing.len() >= 6, "functions in schema duroxide_queue: {managing:?}");
    functions.extend(managing);
    functions
}

async fn in_schema(session: &mut PgConnection, schema: &str) -> Vec<Function> {
    let rows = outcome::must(
        session,
        &format!(
            "SELECT quote_ident(n.nspname), p.proname, p.pronargdefaults::text,
                    coalesce(string_agg(p.proargnames[a.place] || ' ' || format_type(a.type, NULL), ',' ORDER BY a.place), ''),
                    (p.proname ~ '_(queue|client)$' OR p.proname IN ('redrive', 'discard', 'cleanup_schema'))::text
             FROM pg_proc p
             JOIN pg_namespace n ON n.oid = p.pronamespace
             LEFT JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a (type, place) ON true
             WHERE n.nspname = '{}' AND p.proname <> 'list_queues'
             GROUP BY p.oid, n.nspname, p.proname
             ORDER BY p.proname",
            schema.replace('\'', "''")
        ),
    )
    .await;
    rows.into_iter().map(function).collect()
}

fn function(row: Vec<Option<String>>) -> Function {
    let mut columns = row.into_iter().map(|column| column.expect("no column is NULL"));
    let mut next = || columns.next().expect("five columns");
    Function {
        schema: next(),
        name: next(),
        optional: next().parse().expect("a number"),
        arguments: next()
            .split(',')
            .filter_map(|argument| argument.split_once(' '))
            .map(|(name, sql_type)| Argument { name: name.to_owned(), sql_type: sql_type.to_owned() })
            .collect(),
        manages: next() == "true",
    }
}
