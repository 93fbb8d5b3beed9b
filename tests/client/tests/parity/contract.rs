//! Functions and tables of a queue, from the lists of the catalog test.

use std::collections::BTreeMap;

const FUNCTIONS: &str = include_str!("../catalog/functions.tsv");
const TABLES: &str = include_str!("../catalog/tables.tsv");

/// A function of the contract.
pub struct Function {
    pub name: &'static str,
    arguments: &'static str,
}

impl Function {
    /// The names of the arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> {
        self.arguments
            .split(", ")
            .filter_map(|argument| argument.split(' ').next())
            .filter(|name| !name.is_empty())
    }
}

pub fn functions() -> impl Iterator<Item = Function> {
    rows(FUNCTIONS).map(|row| Function { name: row[0], arguments: row[1] })
}

/// A query for the contents of each table of data, in order, with times as milliseconds of the Unix
/// epoch. Ids of queues give the order and are not compared: a refused call may burn one.
pub fn table_queries() -> BTreeMap<&'static str, (Vec<&'static str>, String)> {
    let mut columns: BTreeMap<&str, Vec<[&str; 6]>> = BTreeMap::new();
    for row in rows(TABLES).filter(|row| row[0] != "_duroxide_migrations") {
        columns.entry(row[0]).or_default().push(row[..].try_into().expect("six fields"));
    }
    columns
        .into_iter()
        .map(|(table, columns)| {
            let mut key: Vec<_> = columns.iter().filter(|column| column[5] != "0").collect();
            key.sort_by_key(|column| column[5]);
            let key: Vec<_> = key.iter().map(|column| column[1]).collect();
            let shown: Vec<_> = columns.iter().filter(|column| column[1] != "id").collect();
            let expressions: Vec<_> = shown
                .iter()
                .map(|[_, name, kind, ..]| match *kind {
                    "timestamp with time zone" => format!(
                        "CASE WHEN isfinite({name}) \
                         THEN trim_scale(extract(epoch FROM {name})::numeric * 1000)::text ELSE {name}::text END"
                    ),
                    _ => (*name).to_owned(),
                })
                .collect();
            let query = format!("SELECT {} FROM {table} ORDER BY {}", expressions.join(", "), key.join(", "));
            (table, (shown.iter().map(|column| column[1]).collect(), query))
        })
        .collect()
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}
