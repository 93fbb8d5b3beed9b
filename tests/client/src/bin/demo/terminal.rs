//! How the demo looks.

use std::io::{self, IsTerminal};

/// A numbered step of the story.
pub fn heading(number: u32, text: &str) {
    let (bold, plain) = if io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    println!("\n{bold}{number}. {text}{plain}");
}

/// A line of the story.
pub fn say(text: &str) {
    println!("   {text}");
}

/// Rows under their column names, each column as wide as its widest cell.
pub fn table(columns: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .chain([columns[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> =
            cells.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
        say(padded.join("  ").trim_end());
    };
    line(columns.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// The beginning of a lock token: enough to tell it from the others of one demo.
pub fn short(token: &str) -> &str {
    token.get(..13).unwrap_or(token)
}
