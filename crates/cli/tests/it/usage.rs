//! Bad usage: reported before anything is sent.

use tenure_testkit::{Server, ServerKind};

use crate::tool::{Tenure, key, opened, shared};

#[test]
fn without_a_server_the_error_names_both_ways_to_give_one() {
    for servers in [None, Some(""), Some(" ")] {
        let mut run = Tenure::new();
        if let Some(servers) = servers {
            run = run.env("TENURE_SERVERS", servers);
        }
        let ran = run.args(["k"]).sh("echo ran").run();
        ran.code(64).stdout("").says(&["--server", "TENURE_SERVERS", "--local"]);
    }
    for command in ["acquire", "extend", "release", "status"] {
        let words = if command == "acquire" { &["--ttl", "9", "k"][..] } else { &["k"] };
        Tenure::to(command).args(words).run().code(64).stdout("");
    }
}

#[test]
fn a_server_may_be_named_by_a_variable_and_the_option_wins() {
    let url = shared().url();
    let run = || Tenure::new().env("TENURE_SERVERS", &url).args([&key()]);
    run().sh("echo ran").run().code(0).stdout("ran\n").silent();
    let run = Tenure::new().env("TENURE_SERVERS", "redis://127.0.0.1:1").server(shared());
    run.args([&key()]).sh("echo ran").run().code(0).stdout("ran\n");
}

#[test]
fn invalid_arguments_exit_64_before_anything_is_sent() {
    let server = shared();
    let mut monitor = server.monitor();
    let key = key();
    let reserved = format!("{key}:tenure:fence");
    let long = "x".repeat(65);
    for (words, parts) in [
        (&["--ttl", "0", &key][..], &["--ttl", "0ns", "500ms"][..]),
        (&["-E", "600", &key], &["600", "0 to 255"]),
        (&["-E", "-1", &key], &["-1", "0 to 255"]),
        (&["-E", "x", &key], &["x", "0 to 255"]),
        (&["--max-hold", "0", &key], &["max_hold", "above zero"]),
        (&["--local", &key], &["--local", "--server"]),
        (&["--ttl", "0.499", &key], &["--ttl", "499ms", "500ms"]),
        (&["--ttl", "soon", &key], &["--ttl", "soon"]),
        (&["--ttl", "3000000000h", &key], &["TTL", "2^53 ms"]),
        (&["--ttl=-1", &key], &["-1", "a number of seconds"]),
        (&["--wait", "1y", &key], &["--wait", "1y"]),
        (&["--wait", "18446744073709551616", &key], &["--wait", "2^64 seconds"]),
        (&["-n", "-w", "1", &key], &["--no-wait", "--wait"]),
        (&["--label", &long, &key], &["65", "64"]),
        (&[""], &["key is empty"]),
        (&[&reserved], &["tenure:fence"]),
        (&["--nonsense", &key], &["--nonsense"]),
    ] {
        let ran = Tenure::new().server(server).args(words).sh("echo ran").run();
        ran.code(64).stdout("").says(parts);
    }
    let seen = monitor.so_far();
    assert!(!seen.iter().any(|line| line.contains(&key)), "{seen:?}");
    for address in ["127.0.0.1", "http://u:hunter2@h", "redis://u:hunter2@h:0"] {
        let ran = Tenure::new().args(["--server", address, &key]).sh("echo ran").run();
        let ran = ran.code(64).stdout("").says(&["bad server address"]);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn several_servers_vote() {
    let servers = ServerKind::ALL.map(Server::start);
    opened(&servers);
    let [one, two, three] = servers.each_ref().map(|server| server.url() + "?durable=yes");
    let down = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
    let of_variable = |servers: &[&str]| {
        Tenure::new().env("TENURE_SERVERS", &servers.join(",")).args([&key()]).sh("echo ran")
    };
    let of_options = Tenure::new().url(&one).url(&two).url(&three).args([&key()]).sh("echo ran");
    for run in [of_options, of_variable(&[&one, &two, &three]), of_variable(&[&one, &two, down[0]])]
    {
        run.run().code(0).stdout("ran\n");
    }
    // Two of three cannot be reached: there is no quorum.
    let ran = of_variable(&[&one, down[0], down[1]]).run().code(69).stdout("");
    ran.says(&["of 2 needed servers granted", "127.0.0.1:1 cannot", "127.0.0.1:2 cannot"]);
    of_variable(&[&one, &one]).run().code(64).stdout("").says(&["named twice"]);
}

/// An error about too few servers names each of them.
#[test]
fn each_command_names_every_server_that_failed() {
    opened([shared()]);
    let one = format!("{}?durable=yes", shared().url());
    let to = |command| {
        let down = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
        Tenure::to(command).url(&one).url(down[0]).url(down[1])
    };
    let (key, token) = (key(), "00112233445566778899aabbccddeeff@me");
    for run in [
        to("status").args([&key]),
        to("acquire").args(["--ttl", "60", &key]),
        to("release").args(["--token", token, &key]),
        to("extend").args(["--ttl", "60", "--token", token, &key]),
    ] {
        let ran = run.run().code(69);
        // The status still says of each server whether it may vote.
        assert!(ran.stdout.is_empty() || ran.stdout.contains("may vote"), "{ran:?}");
        ran.says(&["127.0.0.1:1 cannot be reached", "127.0.0.1:2 cannot be reached"]);
    }
}

#[test]
fn help_and_version_work_and_show_no_password() {
    let url = "redis://u:hunter2@h";
    for command in ["run", "acquire", "extend", "release", "status", "--help"] {
        let words: &[&str] = if command == "--help" { &[] } else { &["--help"] };
        let ran = Tenure::to(command).env("TENURE_SERVERS", url).args(words).run();
        let ran = ran.code(0).silent();
        assert!(ran.stdout.contains("Usage: tenure"), "{ran:?}");
        assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
    }
    let ran = Tenure::to("--version").run().code(0).silent();
    assert_eq!(ran.stdout, concat!("tenure ", env!("CARGO_PKG_VERSION"), "\n"));
    Tenure::to("rum").args(["k", "true"]).run().code(64).says(&["rum", "--help"]);
}
