//! A system that has little left for the tool.

use crate::{
    setups::Setups,
    tool::{TENURE, in_a_session, key},
};

/// Each number of descriptors from too few to enough.
#[test]
fn a_shortage_of_descriptors_is_told_as_such_and_leaves_no_lock() {
    let setups = Setups::start();
    for servers in &setups.urls {
        let mut codes = Vec::new();
        for limit in 4..=LIMIT {
            let key = key();
            // The shell's own limit; the status is asked without it.
            let line = format!(
                "(ulimit -n {limit}; exec $T run --wait 0 {key} sh -c 'exit 7'); echo $?; \
                 $T status {key} >&2; echo $?"
            );
            let mut command = in_a_session();
            command.args(["sh", "-c", &line]).env("T", TENURE).env("TENURE_SERVERS", servers);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let code = printed.lines().next().unwrap().to_owned();
            let case = format!("{servers} with {limit}: {printed:?} {said:?}");
            assert!(["71", "7"].contains(&&*code), "{case}");
            let told = said.contains("os error 24") || said.contains("has no descriptor");
            assert!(code == "7" || told, "{case}");
            assert_eq!(printed.lines().nth(1), Some("1"), "it is free: {case}");
            codes.push(code);
        }
        let (first, last) = (codes.first().unwrap(), codes.last().unwrap());
        assert_eq!((&**first, &**last), ("71", "7"), "{servers}: {codes:?}");
    }
}

/// Enough for three servers.
const LIMIT: usize = 24;
