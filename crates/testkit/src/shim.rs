//! The clock shim, compiled once for each of its contents.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::TempDir;
use crate::kind::servers_dir;

/// Path of the compiled shim.
pub(crate) fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(compile).clone()
}

fn compile() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (SOURCE, FLAGS).hash(&mut hasher);
    let name = format!("shim-{}-{:016x}.so", std::env::consts::ARCH, hasher.finish());
    let library = servers_dir().join(&name);
    if library.is_file() {
        return library;
    }

    let dir = TempDir::new();
    let source = dir.path().join("clock.c");
    fs::write(&source, SOURCE).expect("write the source of the shim");
    let built = dir.path().join(&name);
    let cc = Command::new("cc").args(FLAGS).arg("-o").arg(&built).arg(&source).output();
    let cc = cc.unwrap_or_else(|e| panic!("the clock shim needs a C compiler named cc: {e}"));
    let complaint = String::from_utf8_lossy(&cc.stderr);
    assert!(cc.status.success(), "cannot compile the clock shim: {complaint}");

    // Other test processes may do the same at the same time, and may have loaded what is there:
    // so it appears whole, by a rename within its own directory.
    fs::create_dir_all(servers_dir()).expect("make target/servers");
    let beside = servers_dir().join(format!("{name}.{}", std::process::id()));
    fs::copy(&built, &beside).expect("copy the shim into target/servers");
    fs::rename(&beside, &library).expect("put the shim in its place");
    library
}

const SOURCE: &str = include_str!("../shim/clock.c");
const FLAGS: [&str; 4] = ["-shared", "-fPIC", "-O1", "-Wall"];
