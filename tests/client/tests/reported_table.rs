//! tests/README.md says where each reported failure is tested: every case has a row, every test that a
//! row names exists, and every test that is named for a case is in its row.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many cases each group has: A1 to G6.
const GROUPS: [(char, usize); 7] = [('A', 7), ('B', 4), ('C', 6), ('D', 8), ('E', 5), ('F', 3), ('G', 6)];

/// The folder `tests` of the repository.
fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code spans of the last column, by case; a case with two rows is a failure of its own.
fn table(complaints: &mut Vec<String>) -> BTreeMap<String, Vec<String>> {
    let readme = read(&tests().join("README.md"));
    let mut table = BTreeMap::new();
    let mut heading = ' ';
    for line in readme.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.chars().next().unwrap_or(' ');
        }
        let Some(row) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else { continue };
        let columns: Vec<&str> = row.split(" | ").collect();
        let &[case, _, tests] = columns.as_slice() else {
            complaints.push(format!("not three columns: {line}"));
            continue;
        };
        if case == "case" {
            continue;
        }
        if !case.starts_with(heading) {
            complaints.push(format!("{case} stands under {heading}"));
        }
        let spans = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if table.insert(case.to_owned(), spans).is_some() {
            complaints.push(format!("{case} has two rows"));
        }
    }
    table
}

/// Every test function of the client tests as `file: name`.
fn functions(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry of a folder").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned();
        if path.is_dir() {
            functions(&path, &format!("{prefix}{name}/"), found);
        } else if name.ends_with(".rs") {
            let source = read(&path);
            let mut is_test = false;
            for line in source.lines().map(str::trim_start) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let function = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some((function, _)) = function.and_then(|rest| rest.split_once('(')) {
                    if is_test {
                        found.push(format!("{prefix}{name}: {function}"));
                    }
                    is_test = false;
                }
            }
        }
    }
}

/// The case that a test function is named for: `a1_...` for A1.
fn case_of(function: &str) -> Option<String> {
    let (_, name) = function.rsplit_once(": ")?;
    let (case, _) = name.split_once('_')?;
    let case = case.to_uppercase();
    let known = GROUPS.iter().any(|(group, cases)| (1..=*cases).any(|n| case == format!("{group}{n}")));
    known.then_some(case)
}

/// Whether the text names the case as a word of its own.
fn names(text: &str, case: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| word == case)
}

#[test]
fn every_reported_failure_has_its_tests_and_they_exist() {
    let mut complaints = Vec::new();
    let table = table(&mut complaints);
    let mut functions_found = Vec::new();
    functions(&tests().join("client/tests"), "", &mut functions_found);
    assert!(functions_found.len() > 100, "only {} tests found", functions_found.len());

    for (group, cases) in GROUPS {
        for case in (1..=cases).map(|number| format!("{group}{number}")) {
            let Some(spans) = table.get(&case) else {
                complaints.push(format!("{case} has no row"));
                continue;
            };
            let mut found_by_its_name = false;
            for span in spans {
                if span.contains(": ") {
                    if !functions_found.contains(span) {
                        let name = span.rsplit(": ").next().unwrap_or_default();
                        let elsewhere =
                            functions_found.iter().find(|found| found.ends_with(&format!(": {name}")));
                        let hint = elsewhere.map(|found| format!(" (there is {found})")).unwrap_or_default();
                        complaints.push(format!("{case}: no such test: {span}{hint}"));
                    }
                    found_by_its_name |= case_of(span).as_ref() == Some(&case);
                } else if tests().join(span).is_file() {
                    found_by_its_name |= names(&read(&tests().join(span)), &case);
                } else {
                    complaints.push(format!("{case}: no such file: {span}"));
                }
            }
            if !found_by_its_name {
                complaints.push(format!("{case}: none of its tests is found by the name of the case"));
            }
        }
    }
    for function in &functions_found {
        if let Some(case) = case_of(function)
            && !table.get(&case).is_some_and(|spans| spans.contains(function))
        {
            complaints.push(format!("not in the row of {case}: {function}"));
        }
    }
    let expected: usize = GROUPS.iter().map(|(_, cases)| cases).sum();
    if table.len() > expected {
        complaints.push(format!("{} rows for {expected} cases", table.len()));
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
