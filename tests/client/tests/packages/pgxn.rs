//! The PGXN distribution.

use crate::{Folder, bash, project, tree, use_extension, version};
use duroxide_queue_tests::programs::{command, must_run};
use serde_json::Value;
use std::path::Path;

/// What PGXN's client does: it unpacks, and calls make and make install with PG_CONFIG.
#[tokio::test]
async fn the_distribution_builds_and_installs() {
    let name = format!("duroxide_queue-{}", version());
    let said = must_run(&mut project("make", &["dist"]));
    let zip = said.lines().find(|line| line.ends_with(&format!("{name}.zip")));
    let zip = crate::root().join(zip.unwrap_or_else(|| panic!("no {name}.zip: {said}")));
    let folder = Folder::make("pgxn");
    // Cargo goes by the times of files: what is older than the build of the same source is not compiled once more,
    // unless the project's tools take this folder for the checkout that the cache is for.
    bash(r#"unzip -q "$1" -d "$2"; find "$2" -exec touch -d 2000-01-01 {} +"#, &[&zip, &folder.0]);
    let source = folder.0.join(&name);
    for file in ["META.json", "README.md", "LICENSE", "CHANGELOG.md", "Cargo.lock", "Makefile"] {
        assert!(source.join(file).is_file(), "{file} is in it");
    }
    let make = |arguments: &[&str]| {
        must_run(
            command("make")
                .current_dir(&source)
                .env("DUROXIDE_QUEUE_LOCKED", "1")
                // Under another make it would say where it works.
                .env_remove("MAKEFLAGS")
                .env_remove("MAKELEVEL")
                .args(arguments),
        )
    };

    let help = make(&[]);
    assert!(help.contains("make install"), "a newcomer's 'make' says what there is: {help}");
    let destination = folder.0.join("root");
    let pg_config = tree::below(&destination);
    let server = format!(
        "PG_CONFIG={}",
        Path::new("/").join(pg_config.strip_prefix(&destination).expect("below")).display()
    );
    let built = make(&[&server]);
    let built = built.lines().next().expect("make says where it has put what it has built");
    assert!(source.join(built).join("lib/duroxide_queue.so").is_file(), "{built}");
    make(&["install", &server, &format!("DESTDIR={}", destination.display())]);

    use_extension(&pg_config).await;

    make(&["uninstall", &server, &format!("DESTDIR={}", destination.display())]);
    let left = bash(r#"find "$1" -name '*duroxide*.*'"#, &[&destination]);
    assert_eq!(left, "", "uninstall leaves nothing");
}

/// The rules of PGXN's meta specification 1.0.0 for the fields that are there, and that no required one is missing.
#[test]
fn meta_json_is_valid() {
    let meta = std::fs::read_to_string(crate::root().join("META.json")).expect("META.json is there");
    let meta: Value = serde_json::from_str(&meta).expect("META.json is JSON");
    let meta = meta.as_object().expect("an object");
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let term = |name: &str| {
        name.len() >= 2
            && !name.contains(|c: char| c == '/' || c == '\\' || c.is_whitespace() || c.is_control())
    };
    let is_version = |value: &Value| {
        let parts: Vec<_> = value.as_str().unwrap_or_default().split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok_and(|n| n.to_string() == *part))
    };

    for field in ["name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"] {
        assert!(meta.contains_key(field), "{field} is required");
    }
    for (field, value) in meta {
        let valid = match field.as_str() {
            "name" => text(value) && term(value.as_str().unwrap_or_default()),
            "version" => is_version(value) && value == version(),
            "abstract" | "description" | "maintainer" => text(value),
            "license" => value == "mit",
            "release_status" => ["stable", "testing", "unstable"].iter().any(|status| value == status),
            "meta-spec" => value["version"] == "1.0.0",
            "tags" => value.as_array().is_some_and(|tags| {
                !tags.is_empty()
                    && tags.iter().all(|tag| tag.as_str().is_some_and(|tag| (2..=255).contains(&tag.len())))
            }),
            "prereqs" => {
                value == &serde_json::json!({ "runtime": { "requires": { "PostgreSQL": "15.0.0" } } })
            }
            "provides" => value.as_object().is_some_and(|extensions| {
                extensions.len() == 1
                    && extensions.iter().all(|(name, extension)| {
                        let is_file = |field: &str| {
                            extension[field].as_str().is_some_and(|path| crate::root().join(path).is_file())
                        };
                        name == "duroxide_queue"
                            && extension["version"] == version()
                            && is_file("file")
                            && is_file("docfile")
                    })
            }),
            _ => false,
        };
        assert!(valid, "{field} is not as the specification wants it: {value}");
    }
}
