//! The list of validations against the source of the duroxide that this package is built with.

use crate::validations::{self, FOR_LONG_POLLING_ONLY};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULES: &str = "src/provider_validation";

/// Module and name of a validation.
type Names = BTreeSet<(String, String)>;

/// Says which validations the list lacks, and which it has that duroxide does not.
pub fn check() -> Result<(), String> {
    let exported = exported_by(&duroxide_source()?)?;
    let listed: Names = validations::all()
        .into_iter()
        .map(|validation| {
            let function = validation.name.split('(').next().unwrap_or_default();
            (validation.module.to_owned(), function.to_owned())
        })
        .chain(FOR_LONG_POLLING_ONLY.map(|(module, name)| (module.to_owned(), name.to_owned())))
        .collect();

    if exported.is_empty() || exported != listed {
        return Err(format!(
            "duroxide exports {} validations, the list has {}; missing here: {:?}; unknown there: {:?}",
            exported.len(),
            listed.len(),
            exported.difference(&listed).collect::<Vec<_>>(),
            listed.difference(&exported).collect::<Vec<_>>(),
        ));
    }
    let all = validations::all();
    let unknown: Vec<_> = validations::BY_THE_CLOCK
        .iter()
        .filter(|named| !all.iter().any(|one| (one.module, one.name.as_str()) == **named))
        .collect();
    if !unknown.is_empty() {
        return Err(format!("measured by the clock, but not in the list: {unknown:?}"));
    }
    Ok(())
}

/// Where cargo keeps the source of duroxide.
fn duroxide_source() -> Result<PathBuf, String> {
    let version = cargo(&["-vV"])?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or_else(|| format!("cargo -vV names no host: {version}"))?;
    // Without the platform, cargo would want the packages of every platform, which building
    // this test has not downloaded.
    let metadata = cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        "--filter-platform",
        host,
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ])?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "duroxide")
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .map(Path::to_owned)
        .ok_or_else(|| "cargo metadata knows no package duroxide".to_owned())
}

/// What cargo prints when it is called so.
fn cargo(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("cargo {}: {error}", arguments[0]))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {}: {said}", arguments[0]));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo {}: {error}", arguments[0]))
}

/// Every `pub async fn` of the validation modules: all of them are validations.
fn exported_by(source: &Path) -> Result<Names, String> {
    let folder = source.join(MODULES);
    let mut names = Names::new();
    for entry in folder.read_dir().map_err(|error| format!("{folder:?}: {error}"))? {
        let path = entry.map_err(|error| format!("{folder:?}: {error}"))?.path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path:?}: {error}"))?;
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name = rest.split(['(', '<']).next().unwrap_or_default();
                names.insert((module.to_string(), name.to_owned()));
            }
        }
    }
    Ok(names)
}
