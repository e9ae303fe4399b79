//! The manual: pages made from the same definitions as the help, and kept under `docs/man`.

use std::{fs, path::Path};

use clap_mangen::Man;

/// With `TENURE_WRITE_MANUAL=1` it writes the pages instead.
#[test]
fn the_manual_matches_the_help() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let write = std::env::var_os("TENURE_WRITE_MANUAL").is_some();
    let mut tenure = super::tenure().display_name("tenure");
    // Gives the commands their names in full.
    tenure.build();
    let commands = [&tenure].into_iter().chain(tenure.get_subcommands());
    let pages = commands.map(|command| (command.get_display_name().unwrap(), command.clone()));
    for (name, command) in pages {
        let mut text = Vec::new();
        Man::new(command).source("tenure").render(&mut text).unwrap();
        let file = directory.join(format!("{name}.1"));
        if write {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let kept = fs::read(&file).unwrap_or_default();
        assert!(
            kept == text,
            "{name}.1 is out of date: TENURE_WRITE_MANUAL=1 cargo test -p tenure-cli"
        );
    }
}
