//! The package for Debian and Ubuntu.

use crate::{Folder, bash, major, project, tree, use_extension, version};
use duroxide_queue_tests::programs::{command, must_run, must_run_in_vain};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[tokio::test]
async fn the_package_installs_into_a_clean_root_and_works() {
    let package = make();
    let root = Folder::make("root");
    let pg_config = tree::as_debian_has_it(&root.0);
    database_of_packages(&root.0, &depends(&package)[1..]);

    let refused = must_run_in_vain(dpkg(&root.0).arg("--install").arg(&package));
    assert!(refused.contains(&format!("depends on postgresql-{}", major())), "{refused}");
    database_of_packages(&root.0, &depends(&package));
    must_run(dpkg(&root.0).arg("--install").arg(&package));

    use_extension(&pg_config).await;

    must_run(dpkg(&root.0).arg("--purge").arg(name()));
    let left = bash(r#"find "$1" -name '*duroxide*'"#, &[&root.0.join("usr")]);
    assert_eq!(left, "", "it goes as it came");
}

#[test]
fn the_package_is_as_debian_wants_it() {
    let package = make();
    let (name, major) = (name(), major());
    let files = must_run(command("dpkg-deb").arg("--contents").arg(&package));

    let extension = format!("./usr/share/postgresql/{major}/extension/duroxide_queue");
    let expected = [
        format!("./usr/lib/postgresql/{major}/lib/duroxide_queue.so"),
        format!("{extension}.control"),
        format!("{extension}--{}.sql", version()),
        format!("./usr/share/doc/{name}/copyright"),
        format!("./usr/share/doc/{name}/changelog.gz"),
        format!("./usr/share/doc/{name}/changelog.Debian.gz"),
    ];
    let scripts = bash(r#"cd "$1"; ls sql/duroxide_queue--*--*.sql sql/install/*"#, &[&crate::root()]);
    let scripts = scripts.lines().filter_map(|path| path.rsplit('/').next());
    let scripts = scripts.map(|name| format!("./usr/share/postgresql/{major}/extension/{name}"));
    let expected: BTreeSet<String> = expected.into_iter().chain(scripts).collect();
    let mut found = BTreeSet::new();
    for line in files.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let path = fields[5];
        let rights = if path.ends_with('/') { "drwxr-xr-x" } else { "-rw-r--r--" };
        assert_eq!(fields[..2], [rights, "root/root"], "{line}");
        if !path.ends_with('/') {
            found.insert(path.to_owned());
        }
    }
    assert_eq!(found, expected);

    let field =
        |field: &str| must_run(command("dpkg-deb").arg("--field").arg(&package).arg(field)).trim().to_owned();
    assert_eq!(field("Package"), name);
    assert_eq!(field("Version"), format!("{}-1", version()));
    assert_eq!(field("Architecture"), must_run(command("dpkg").arg("--print-architecture")).trim());
    assert!(field("Description").lines().count() > 3, "a line and more below it");
    let depends = depends(&package);
    assert_eq!(depends[0], format!("postgresql-{major}"));
    assert!(depends.contains(&"libc6".to_owned()), "what the library links, by its own word: {depends:?}");

    let unpacked = Folder::make("unpacked");
    let check = r#"dpkg-deb --raw-extract "$1" "$2/all"; cd "$2/all"
        md5sum --strict --check DEBIAN/md5sums
        [ "$(find usr -type f | wc -l)" = "$(wc -l <DEBIAN/md5sums)" ]
        ! nm --debug-syms usr/lib/postgresql/*/lib/duroxide_queue.so 2>&1 | grep -qv 'no symbols' # stripped
        zcat usr/share/doc/*/changelog.Debian.gz | dpkg-parsechangelog -l - --show-field Version"#;
    let said = bash(check, &[&package, &unpacked.0]);
    assert!(said.contains(&format!("{}-1", version())), "{said}");
    let copyright = std::fs::read_to_string(unpacked.0.join(format!("all/usr/share/doc/{name}/copyright")));
    let copyright = copyright.expect("a package has a copyright file");
    for part in ["License: Expat", "Permission is hereby granted", " pgrx v", " uuid v"] {
        assert!(copyright.contains(part), "{part} is not in {copyright}");
    }
}

/// Makes it, once, of the build that is there.
fn make() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let said = must_run(&mut project("tools/package.sh", &[&major()]));
        let package = said.lines().filter_map(|line| line.strip_prefix("package: ")).next_back();
        crate::root().join(package.unwrap_or_else(|| panic!("no package: {said}")))
    });
    made.clone()
}

fn name() -> String {
    format!("postgresql-{}-duroxide-queue", major())
}

fn depends(package: &Path) -> Vec<String> {
    let field = must_run(command("dpkg-deb").arg("--field").arg(package).arg("Depends"));
    field.trim().split(", ").filter_map(|depend| depend.split(' ').next()).map(str::to_owned).collect()
}

fn dpkg(root: &Path) -> Command {
    let mut dpkg = command("dpkg");
    // Only the files of the root are written, so that any user may, also one whose PATH lacks what dpkg looks for.
    let path = std::env::var("PATH").unwrap_or_default();
    dpkg.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    dpkg.arg(format!("--root={}", root.display())).args(["--force-not-root", "--log=/dev/null"]);
    dpkg
}

/// Says that these packages, and no others, are installed in the root.
fn database_of_packages(root: &Path, packages: &[String]) {
    let status: String = packages
        .iter()
        .map(|package| {
            format!(
                "Package: {package}\nStatus: install ok installed\nMaintainer: nobody\nArchitecture: {}\n\
                 Version: 999\nDescription: stands for the real one\n\n",
                must_run(command("dpkg").arg("--print-architecture")).trim()
            )
        })
        .collect();
    let folder = root.join("var/lib/dpkg");
    for part in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder of our own");
    }
    std::fs::write(folder.join("status"), status).expect("a folder of our own");
    std::fs::write(folder.join("available"), "").expect("a folder of our own");
    for package in packages {
        std::fs::write(folder.join(format!("info/{package}.list")), "").expect("a folder of our own");
    }
}
