//! What has been released stays as it was: people have it.

use duroxide_queue_tests::programs::{command, must_run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Scripts of released versions, in the form of sha256sum.
const RELEASED: &str = include_str!("released.sha256");

const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

#[test]
fn a_released_script_never_changes() {
    let sums = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/backup_and_upgrade/released.sha256");
    must_run(command("sha256sum").current_dir(root()).args(["--check", "--strict", sums]));
}

/// A version is released when the changelog gives it a date; from then on its scripts are in the list. The one in the
/// making, on top of the changelog, is free to change.
#[test]
fn every_released_script_is_in_the_list() {
    let versions = versions();
    let listed: BTreeSet<&str> = RELEASED.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    let mut expected = BTreeSet::new();
    for (index, (version, released)) in versions.iter().enumerate() {
        assert!(
            *released || index == 0,
            "{version} is not dated in CHANGELOG.md, but a later version is there"
        );
        let Some((before, _)) = versions.get(index + 1) else {
            expected.extend(released.then(|| format!("sql/install/duroxide_queue--{version}.sql")));
            continue;
        };
        let step = format!("sql/duroxide_queue--{before}--{version}.sql");
        assert!(root().join(&step).is_file(), "{step} is missing: every version can be updated to the next");
        if *released {
            expected.extend([step, format!("sql/install/duroxide_queue--{version}.sql")]);
        }
    }
    assert_eq!(
        listed,
        expected.iter().map(String::as_str).collect(),
        "the list released.sha256 (left) holds the scripts of the versions that CHANGELOG.md dates (right)"
    );

    let mut there = scripts("sql/install");
    there.extend(scripts("sql").into_iter().filter(|path| path.matches("--").count() == 2));
    let unreleased: BTreeSet<String> =
        there.into_iter().filter(|path| !listed.contains(path.as_str())).collect();
    let allowed = match versions.as_slice() {
        [(version, false), (before, _), ..] => {
            BTreeSet::from([format!("sql/duroxide_queue--{before}--{version}.sql")])
        }
        _ => BTreeSet::new(),
    };
    assert_eq!(unreleased, allowed, "scripts that are in no list (left), and the step in the making (right)");
}

#[test]
fn the_version_in_the_making_is_the_same_everywhere() {
    let version = &versions()[0].0;
    let of = |file: &str, before: &str, after: char| {
        let text =
            std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let rest = text.split_once(before).unwrap_or_else(|| panic!("{before} is in {file}")).1;
        rest.split(after).next().expect("a split has a first part").to_owned()
    };
    assert_eq!(&of("Cargo.toml", "\nversion = \"", '"'), version, "Cargo.toml and CHANGELOG.md");
    assert_eq!(&of("Cargo.lock", "name = \"duroxide_queue\"\nversion = \"", '"'), version, "Cargo.lock");
    assert_eq!(&of("META.json", "\n  \"version\": \"", '"'), version, "META.json");
    assert_eq!(of("duroxide_queue.control", "default_version = '", '\''), "@CARGO_VERSION@");
}

/// The text of each install script that has been released.
pub(crate) fn install_scripts() -> Vec<String> {
    let scripts: Vec<String> = scripts("sql/install").iter().map(|path| read(path)).collect();
    assert!(!scripts.is_empty(), "0.1.0 is released");
    scripts
}

/// The versions of the changelog, the newest first, and whether each has a date.
fn versions() -> Vec<(String, bool)> {
    let headings = CHANGELOG.lines().filter_map(|line| line.strip_prefix("## "));
    headings
        .map(|heading| {
            let (version, state) = heading.split_once(" (").expect("## version (date)");
            (version.to_owned(), state != "unreleased)")
        })
        .collect()
}

fn scripts(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names =
        entries.map(|entry| entry.expect("a folder can be read").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("duroxide_queue--")).map(|name| format!("{folder}/{name}")).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
