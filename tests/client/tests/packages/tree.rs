//! A copy of one of our servers without the extension, to install it into.

use crate::{bash, major};
use std::path::{Path, PathBuf};

/// Copies the server, as it is laid out, to the same path below a folder; gives its pg_config.
pub(crate) fn below(root: &Path) -> PathBuf {
    let server = server();
    let copy = root.join(server.strip_prefix("/").expect("an absolute path"));
    copy_server(&server, &copy);
    copy.join("bin/pg_config")
}

/// Copies the server to where Debian's packages lay it out; gives its pg_config. Its programs look for the rest by their
/// own place, so a link stands where they look for what Debian has below /usr/share.
pub(crate) fn as_debian_has_it(root: &Path) -> PathBuf {
    let major = major();
    let copy = root.join("usr/lib/postgresql").join(&major);
    let share = root.join("usr/share/postgresql");
    copy_server(&server(), &copy);
    bash(
        r#"mkdir -p "$2"; mv "$1/share" "$2/$3"; ln -s "../../../share/postgresql/$3" "$1/share""#,
        &[&copy, &share, Path::new(&major)],
    );
    copy.join("bin/pg_config")
}

fn copy_server(server: &Path, copy: &Path) {
    bash(
        r#"mkdir -p "$2"; cp -a "$1"/{bin,lib,share} "$2"
           find "$2" -name 'duroxide_queue*' -delete"#,
        &[server, copy],
    );
}

/// The folder of our own server of that version.
fn server() -> PathBuf {
    let env = crate::root().join("tools/env.sh");
    PathBuf::from(
        bash(r#". "$1"; dirname "$(dirname "$(pg_config_of "$2")")""#, &[&env, Path::new(&major())]).trim(),
    )
}
