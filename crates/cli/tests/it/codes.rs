//! Exit codes: the command's own, and the tool's.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use tenure_testkit::{FakeAnswer, FakeServer, Server, ServerKind, TempDir};

use crate::tool::{Tenure, is_free, key, shared};

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    for code in [0, 1, 7, 75, 126, 255] {
        let key = key();
        let run = Tenure::new().server(shared()).args([&key]).sh(&format!("exit {code}"));
        run.run().code(code).silent();
        assert!(is_free(shared(), &key), "after {code}");
    }
}

#[test]
fn a_command_killed_by_a_signal_exits_with_128_plus_its_number() {
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139)] {
        let key = key();
        let run = Tenure::new().server(shared()).args([&key]).sh(&format!("kill -{signal} $$"));
        run.run().code(code).silent();
        assert!(is_free(shared(), &key), "after {signal}");
    }
}

#[test]
fn a_busy_lock_exits_75_or_as_asked_and_names_the_holder_and_its_age() {
    let key = key();
    let holder = Tenure::new().server(shared()).args(["--label", "night shift", &key]);
    let holder = holder.args(["sleep", "60"]).start().until_held(&key);
    for (options, code) in [
        (&["-n"][..], 75),
        (&["--no-wait"], 75),
        (&["--wait", "0"], 75),
        (&["-w", "0.3"], 75),
        (&["-n", "-E", "9"], 9),
        (&["-n", "-E", "0"], 0),
    ] {
        let run = Tenure::new().server(shared()).args(options).args([&key]).sh("echo ran");
        run.run().code(code).stdout("").says(&[&key, "held by night shift for ", " s (ends in "]);
    }
    holder.signal(rustix::process::Signal::TERM);
    holder.wait().code(143);
}

#[test]
fn a_command_that_cannot_be_run_frees_the_lock_at_once() {
    let dir = TempDir::new();
    let file = dir.path().join("file");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    for (program, code) in [
        ("/nonexistent/program", 127),
        ("no-such-program-anywhere", 127),
        (file.to_str().unwrap(), 126),
        ("/etc/passwd", 126),
        ("/", 126),
    ] {
        let key = key();
        let ran = Tenure::new().server(shared()).args([&key, program]).run();
        ran.code(code).says(&["cannot run", program, "(os error "]);
        assert!(is_free(shared(), &key), "{program}");
    }
}

#[test]
fn an_unreachable_server_exits_69_and_names_the_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("redis://user:hunter2@127.0.0.1:{port}");
    let ran = Tenure::new().url(&url).args(["k"]).sh("echo ran").run();
    let said = format!(
        "tenure: could not determine whether the lock \"k\" is free: the server \
         127.0.0.1:{port} cannot be reached: Connection refused (os error 111); is it up, and is \
         the address right?\n"
    );
    assert_eq!(ran.code(69).stdout("").stderr, said);
    let ran = Tenure::new().url(&url).args(["--wait", "300ms", "k"]).sh("echo ran").run();
    assert_eq!(ran.code(69).stdout("").stderr, said);
}

#[test]
fn a_server_that_requires_a_password_exits_69_and_prints_none() {
    let server = Server::builder(ServerKind::Redis70).password("hunter2").start();
    let path = server.socket().unwrap().display().to_string();
    let none_given = "wants a password, and its address has none";
    let not_accepted = "does not accept this user or password";
    for (login, why) in
        [("", none_given), ("u:hunter3@", not_accepted), (":hunter3@", not_accepted)]
    {
        let url = format!("redis+unix://{login}{path}");
        let ran = Tenure::new().env("TENURE_SERVERS", &url).args(["k"]).sh("echo ran").run();
        let ran =
            ran.code(69).stdout("").says(&["could not determine", &path, why, "password_file"]);
        assert!(!ran.stderr.contains("hunter"), "{ran:?}");
    }
    let url = format!("redis+unix://:hunter2@{path}");
    Tenure::new().url(&url).args(["k"]).sh("echo ran").run().code(0).stdout("ran\n");
}

#[test]
fn a_server_that_refuses_writes_exits_69_and_is_not_busy() {
    let full = Server::builder(ServerKind::Redis70).start();
    full.cmd(&["SET", "ballast", "x"]);
    full.cmd(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    full.cmd(&["CONFIG", "SET", "maxmemory", "1"]);
    let replica = Server::builder(ServerKind::Redis70).start();
    // Nobody is there: it waits for its primary, read-only.
    replica.cmd(&["REPLICAOF", "127.0.0.1", "1"]);
    let refuses = |words: &'static str| {
        FakeServer::unix(move |_| {
            move |command| FakeAnswer::to_handshake(&command).unwrap_or_else(|| words.into())
        })
    };
    let crowded = FakeServer::unix(|_| {
        |_| FakeAnswer::SendAndClose(b"-ERR max number of clients reached\r\n".to_vec())
    });
    let loading = refuses("-LOADING Redis is loading the dataset in memory\r\n");
    let disk = refuses("-MISCONF Errors writing to the AOF file: No space left on device\r\n");
    for (url, parts) in [
        (crowded.url(), ["as many clients as it accepts", "raise its maxclients"]),
        (disk.url(), ["No space left on device", "look at the server's disk"]),
        (full.url(), ["has no memory left", "maxmemory"]),
        (replica.url(), ["read-only replica", "name the primary"]),
        (loading.url(), ["still loading", "--wait"]),
    ] {
        for options in [&[][..], &["-n"], &["--wait", "200ms"]] {
            let run = Tenure::new().url(&url).args(options).args(["k"]).sh("echo ran");
            run.run()
                .code(69)
                .stdout("")
                .says(&["could not determine whether the lock \"k\" is free"]);
        }
        Tenure::new().url(&url).args(["k"]).sh("echo ran").run().code(69).says(&parts);
    }
}
