//! Command lines, good and bad.

use std::{ffi::OsString, time::Duration};

use tenure::Wait;

use super::*;

fn parsed(words: &[&str]) -> Result<RunArgs, String> {
    let line = ["tenure", "run", "--server", "memory://"].iter().chain(words);
    match parse(line.map(OsString::from)) {
        Ok(CommandLine::Run(run)) => Ok(run),
        Ok(other) => Err(format!("{other:?}")),
        Err(failure) => Err(failure.message.unwrap_or_default()),
    }
}

#[test]
fn the_command_line_is_well_formed() {
    tenure().debug_assert();
}

#[test]
fn options_end_at_the_key() {
    for (words, expected) in [
        (&["k", "c"][..], &["k", "c"][..]),
        (&["k", "c", "-n", "--ttl", "x"], &["k", "c", "-n", "--ttl", "x"]),
        (&["k", "--", "c", "--help"], &["k", "c", "--help"]),
        (&["k", "c", "--", "x"], &["k", "c", "--", "x"]),
        (&["k", "--", "c", "--", "x"], &["k", "c", "--", "x"]),
        (&["--", "-k", "c", "-V"], &["-k", "c", "-V"]),
        (&["k", "--", "-c", "x"], &["k", "-c", "x"]),
        (&["k", "--", "--", "x"], &["k", "--", "x"]),
    ] {
        let run = parsed(words).unwrap();
        let got: Vec<_> = [run.key, run.program].into_iter().chain(run.args).collect();
        assert_eq!(got, expected, "{words:?}");
        assert_eq!(run.wait, Wait::Forever, "{words:?}");
    }
}

/// A forgotten KEY would lock the program's name, and run its first argument.
#[test]
fn a_separator_in_the_place_of_the_key_is_bad_usage() {
    for words in [
        &["--", "echo", "hi"][..],
        &["-n", "--", "echo", "hi"],
        &["--label", "x", "--", "ls", "--", "dir"],
        &["--", "echo"],
        &["--", "", "echo"],
    ] {
        let said = parsed(words).unwrap_err();
        assert!(said.contains("no KEY before `--`") && said.contains("nightly -- ./rep"), "{said}");
    }
    // A separator that is the value of something is none.
    assert_eq!(parsed(&["--label=--", "k", "c"]).unwrap().key, "k");
}

/// They would be run as the command, or be waited for without the limit that they set.
#[test]
fn options_between_key_and_command_are_bad_usage() {
    for words in [
        &["k", "-n", "--", "c"][..],
        &["k", "--wait", "5", "--", "c"],
        &["k", "--ttl=5", "c"],
        &["k", "-c", "x"],
        &["k", "--no-wait"],
        &["--", "-k", "-n", "--", "c"],
    ] {
        let said = parsed(words).unwrap_err();
        assert!(said.contains("after the KEY") && said.contains("before KEY"), "{said}");
    }
}

#[test]
fn an_error_is_one_line_with_value_and_bound() {
    for (words, parts) in [
        (&["--ttl", "0.1", "k", "c"][..], &["0.1", "--ttl", "100ms", "500ms"][..]),
        (&["--wait", "soon", "k", "c"], &["soon", "--wait", "a number of seconds"]),
        (&["-n", "-w", "1", "k", "c"], &["--no-wait", "--wait"]),
        (&["-E", "256", "k", "c"], &["256", "255"]),
        (&["-E", "-1", "k", "c"], &["-1", "255"]),
        (&["--local", "k", "c"], &["--local", "--server"]),
        (&["--kill-after", "20", "k", "c"], &["--kill-after", "20s", "30s", "14749 ms"]),
        (&["k"], &["CMD"]),
        (&["--nowait", "k", "c"], &["--nowait"]),
    ] {
        let said = parsed(words).unwrap_err();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn kill_after_is_a_quarter_of_the_ttl_by_default() {
    for (words, ms) in [
        (&["k", "c"][..], 7_500),
        (&["--ttl", "500ms", "k", "c"], 125),
        (&["--ttl", "1h", "k", "c"], 10_000),
        (&["--ttl", "6", "--kill-after", "1", "k", "c"], 1_000),
        (&["--ttl", "6", "--kill-after", "2869ms", "k", "c"], 2_869),
    ] {
        assert_eq!(parsed(words).unwrap().kill_after, Duration::from_millis(ms), "{words:?}");
    }
}

fn said(line: &[&str]) -> String {
    let line = ["tenure"].iter().chain(line).map(OsString::from);
    parse(line).expect_err("bad usage").message.unwrap_or_default()
}

#[test]
fn a_misspelt_option_gets_a_suggestion() {
    for (line, meant) in [
        (&["run", "--no-wiat", "k", "c"][..], "is `--no-wait` meant?"),
        (&["run", "--sever=redis://h", "k", "c"], "is `--server` meant?"),
        (&["run", "-ttl", "5", "k", "c"], "is `--ttl` meant?"),
        (&["status", "--jason", "k"], "is `--json` meant?"),
        (&["status", "k", "--local", "--max_ttl", "9"], "is `--max-ttl` meant?"),
        (&["rum", "k", "c"], "is `run` meant?"),
        (&["statsu", "k"], "is `status` meant?"),
        (&["run", "--local", "k", "\u{2014}", "c"], "CMD may follow a --"),
        (&["run", "--local", "k", "-", "c"], "put `--` before a CMD"),
        (&["run", "--local", "k", "--", "-", "c"], "CMD may follow a --"),
        (&["run", "\u{2014}ttl", "5", "k", "c"], "options begin with --"),
    ] {
        let said = said(line);
        assert!(said.contains(meant) && !said.contains('\n'), "{line:?}: {said}");
    }
}

#[test]
fn an_argument_that_may_be_a_secret_is_not_repeated() {
    for line in [
        &["status", "k", "redis://u:S3CRET@h"][..],
        &["release", "k", "00112233445566778899aabbccddeeff@S3CRET"],
        &["run", "--ttl", "redis://u:S3CRET@h", "k", "c"],
        &["run", "-E", "u:S3CRET@h", "k", "c"],
        &["redis://u:S3CRET@h", "k"],
        &["status", "--redis://u:S3CRET@h", "k"],
        &["status", "--sever=redis://u:S3CRET@h", "k"],
        &["status", "-redis://u:S3CRET@h", "k"],
        &["run", "k", "--token=00112233445566778899aabbccddeeff@S3CRET", "c"],
        &["--server", "redis://u:S3CRET@h", "status", "k"],
    ] {
        let said = said(line);
        assert!(!said.contains("S3CRET"), "{line:?}: {said}");
    }
}

#[test]
fn a_key_may_be_given_in_hex() {
    for words in [&["--key-hex", "61fF", "c", "x"][..], &["--key-hex", "61fF", "--", "c", "x"]] {
        let run = parsed(words).unwrap();
        assert_eq!(run.key.as_encoded_bytes(), b"a\xff");
        assert_eq!((run.program, run.args), ("c".into(), vec![OsString::from("x")]), "{words:?}");
    }
    for hex in ["6", "6g", "0x61", "+1", "6\u{e9}"] {
        let said = said(&["status", "--local", "--key-hex", hex]);
        assert!(said.contains("--key-hex") && said.contains("two digits"), "{hex}: {said}");
    }
    assert!(said(&["status", "--local", "--key-hex", "61", "k"]).contains("cannot be used with"));
    assert!(said(&["status", "--local"]).contains("<KEY>"));
    assert!(parsed(&["--key-hex", "6100", "c"]).unwrap_err().contains("NUL"));
}
