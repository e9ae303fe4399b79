//! What of keys, labels, values, files and servers' words is shown, and what is taken in again.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::PermissionsExt as _},
    process::Command,
};

use tenure_testkit::{FakeAnswer, FakeServer, TempDir};

use crate::tool::{Ran, Tenure, is_free, key, shared};

fn to(command: &str) -> Tenure {
    Tenure::to(command).server(shared())
}

/// Nothing on either output is more than text, in lines.
fn assert_plain(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let odd = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{200b}\u{fe0f}".contains(c);
        assert!(!text.contains(odd), "{ran:?}");
    }
}

#[test]
fn labels_and_values_cannot_control_a_terminal() {
    let key = key();
    let label = "%1B[2J%0D%0Afree%E2%80%AE%E2%80%8B%EF%B8%8F";
    let token = format!("00112233445566778899aabbccddeeff@{label}");
    for value in [&token, "\u{1b}[2J\r\nfree\u{202e}\u{200b}"] {
        shared().cmd(&["SET", &key, value, "PX", "60000"]);
        for run in [
            to("status").args([&key]),
            to("status").args(["--json", &key]),
            to("run").args(["-n", &key, "true"]),
            to("release").args([&key]),
        ] {
            let ran = run.run();
            assert_plain(&ran);
            assert!((ran.stdout + &ran.stderr).contains("free"));
        }
    }
    // In JSON the label is exact.
    shared().cmd(&["SET", &key, &token, "PX", "60000"]);
    let json = to("status").args(["--json", &key]).run().stdout;
    assert!(json.contains(r#""holder":"\u001b[2J\u000d\u000afree\u202e\u200b\ufe0f""#), "{json}");
}

#[test]
fn the_name_of_a_foreign_type_cannot_control_a_terminal() {
    let odd = "\u{1b}[2J\u{202e}\r\nfree";
    let server = FakeServer::unix(move |_| {
        move |command| {
            let number = command.get(6).map(|number| String::from_utf8_lossy(number).into_owned());
            let (Some(number), true) = (number, command[0].starts_with(b"EVAL")) else {
                return FakeAnswer::to_handshake(&command).unwrap_or_else(|| "-ERR no\r\n".into());
            };
            let from = "$1\r\n7\r\n$7\r\nprimary\r\n";
            let request = format!("*10\r\n${}\r\n{number}\r\n{from}", number.len());
            let head = format!("{request}$0\r\n\r\n$0\r\n\r\n:0\r\n*0\r\n");
            FakeAnswer::Send(
                format!("{head}$4\r\ntype\r\n${}\r\n{odd}\r\n:-1\r\n", odd.len()).into_bytes(),
            )
        }
    });
    for words in [&["k"][..], &["--json", "k"]] {
        let ran = Tenure::to("status").url(&server.url()).args(words).run().code(0);
        assert_plain(&ran);
        assert!(ran.stdout.contains("a value of type "), "{ran:?}");
    }
}

#[test]
fn arguments_cannot_control_a_terminal() {
    let odd = "\u{1b}[2J\u{202e}x\r\ny";
    for (command, words) in [
        ("run", &["--local", "k", odd][..]),
        ("run", &["--local", "--report", odd, "k"]),
        ("run", &["--ttl", odd, "k", "c"]),
        ("status", &["--local", "k", odd]),
        ("status", &[odd]),
        ("acquire", &["--ttl", "9", "--server", odd, "k"]),
        ("acquire", &["--ttl", "9", "--local", "--label", &odd.repeat(30), "k"]),
        (odd, &[]),
    ] {
        let dir = TempDir::new();
        let home = dir.path().to_str().unwrap();
        let ran = Tenure::to(command).env("HOME", home).args(words).run();
        assert_plain(&ran);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn a_binary_key_round_trips_through_json() {
    let bytes = |last: u8| [key().as_bytes(), &[last]].concat();
    let (one, other) = (bytes(0xff), bytes(0xfe));
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let given = |key: &[u8]| OsString::from_vec(key.to_vec());
    let ran = to("acquire").args(["--ttl", "60"]).args([given(&one)]).run().code(0);
    let token = ran.stdout.trim().to_owned();
    for (key, code) in [(&one, 0), (&other, 1)] {
        let json = to("status").args(["--json"]).args([given(key)]).run().code(code).stdout;
        let member = format!("\"key_hex\":\"{}\"", hex(key));
        assert!(json.contains(&member), "no {member} in {json}");
        let again = to("status").args(["--json", "--key-hex", &hex(key)]).run().code(code).stdout;
        assert!(again.contains(&member), "no {member} in {again}");
    }
    let dir = TempDir::new();
    let report = dir.path().join("report");
    let run = to("run").args(["-n", "--report", report.to_str().unwrap()]);
    run.args(["--key-hex", &hex(&one), "true"]).run().code(75);
    let report = fs::read_to_string(&report).unwrap();
    assert!(report.contains(&format!("\"key_hex\":\"{}\"", hex(&one))), "{report}");
    let release = to("release").env("TENURE_TOKEN", &token);
    release.args(["--key-hex", &hex(&one)]).run().code(0).silent();
    to("status").args([given(&one)]).run().code(1);
    let script = "test \"$(printf %s \"$TENURE_KEY\" | od -An -tx1 | tr -d ' \\n')\" = $HEX";
    let run = to("run").env("HEX", &hex(&one)).args(["--key-hex", &hex(&one)]);
    run.sh(script).run().code(0).silent();
}

#[test]
fn memory_is_refused_where_it_excludes_nobody() {
    for address in ["memory://", "memory://shared", "redis://127.0.0.1:1,memory://"] {
        let of = |command: &str| Tenure::to(command).env("TENURE_SERVERS", address);
        for run in [
            of("run").args(["k", "true"]),
            of("acquire").args(["--ttl", "9", "k"]),
            of("status").args(["k"]),
            of("release").args(["--token", "00112233445566778899aabbccddeeff@", "k"]),
        ] {
            run.run().code(64).stdout("").says(&["memory://", "excludes nobody", "--local"]);
        }
    }
}

#[test]
fn an_invalid_password_file_exits_64_and_a_readable_one_warns() {
    let dir = TempDir::new();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.to_str().unwrap(), "/dev/zero", "/nonexistent", "/"] {
        let url = format!("redis://127.0.0.1:1?password_file={path}");
        let ran = Tenure::new().url(&url).args(["k", "true"]).run();
        ran.code(64).says(&["the password file", path]);
    }
    let file = dir.path().join("password");
    fs::write(&file, "hunter2\n").unwrap();
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let url = format!("redis://127.0.0.1:1?password_file={}", file.display());
        let ran = Tenure::new().url(&url).args(["k", "true"]).run().code(69);
        assert_eq!(ran.stderr.contains("every user of this host can read"), is_warned, "{ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn no_message_contains_any_part_of_a_login() {
    for address in [
        "redis://u:S3?CRET@127.0.0.1",
        "redis://u:S3CRET",
        "redis://:S3CRET",
        "redis://u:/S3CRET",
        "redis+unix://u:S3CRET",
        "S3CRET://u@h",
        "redis://h/S3CRET",
        "redis://h?S3CRET=1",
        "redis://127.0.0.1:1,redis://u:S3CRET",
    ] {
        for run in [
            Tenure::new().url(address).args(["k", "true"]),
            Tenure::to("status").env("TENURE_SERVERS", address).args(["-v", "k"]),
            Tenure::to("status").args(["--local", "k", address]),
        ] {
            let ran = run.run().code(64);
            assert!(!ran.stderr.contains("S3") && !ran.stderr.contains("CRET"), "{ran:?}");
        }
    }
}

/// The token is a secret, and others see arguments in the list of processes.
#[test]
fn the_help_recommends_the_variable_for_the_token() {
    let help = Tenure::to("acquire").args(["--help"]).run().code(0).stdout;
    assert!(help.contains("export TENURE_TOKEN") && !help.contains("--token"), "{help}");
    let key = key();
    let token = to("acquire").args(["--ttl", "60", &key]).run().code(0).stdout.trim().to_owned();
    to("extend").env("TENURE_TOKEN", &token).args(["--ttl", "60", &key]).run().code(0).silent();
    to("release").env("TENURE_TOKEN", &token).args([&key]).run().code(0).silent();
    assert!(is_free(shared(), &key));
}
