//! Several servers: which of them vote, and what is said of the others.

use tenure_testkit::{Server, ServerKind, eventually};

use crate::tool::{PATIENCE, Tenure, key, opened};

/// One that was opened by hand, one that is new, and one more that was opened: the addresses, and
/// what they are called.
fn servers() -> ([Server; 3], String, [String; 3]) {
    let servers = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
    opened([&servers[0], &servers[2]]);
    let [one, young, three] = servers.each_ref().map(Server::url);
    let names = servers.each_ref().map(|server| format!("127.0.0.1:{}", server.port().unwrap()));
    (servers, format!("{one}?durable=yes,{young},{three}?durable=yes"), names)
}

fn status(urls: &str, words: &[&str]) -> Tenure {
    Tenure::to("status").env("TENURE_SERVERS", urls).args(words.iter().copied())
}

#[test]
fn status_says_of_each_server_whether_it_votes() {
    let ((servers, urls, [one, young, three]), key) = (servers(), key());
    servers[2].kill();
    let ran = status(&urls, &[&key]).run().code(1).silent();
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[..2], ["free".to_owned(), format!("{one} may vote")]);
    let why = format!("{young} may have forgotten locks and does not vote yet: it has no marker");
    assert!(lines[2].starts_with(&why) && lines[2].contains("it votes in 30.3 s"), "{ran:?}");
    assert!(lines[3].starts_with(&format!("{three} cannot be reached")), "{ran:?}");
    assert_eq!(lines.len(), 4, "{ran:?}");
    let json = status(&urls, &["--json", &key]).run().code(1).stdout;
    assert!(json.contains("\"held\":false,"), "{json}");
    let votes = format!(
        "\"nodes\":[{{\"node\":\"{one}\",\"votes\":true,\"reason\":null,\"votes_in_ms\":null}},"
    );
    let votes_not = format!("{{\"node\":\"{young}\",\"votes\":false,\"reason\":\"the server ");
    assert!(json.contains(&(votes + &votes_not)), "{json}");
}

/// Whether it votes depends on how long a lock may be held that it has forgotten.
#[test]
fn max_ttl_sets_how_long_a_server_is_ineligible() {
    let ((servers, urls, names), key) = (servers(), key());
    servers[2].kill();
    let run = |words: &[&str]| {
        let run = Tenure::new().env("TENURE_SERVERS", &urls).args(words.iter().copied());
        run.args([&key]).sh("echo ran").run()
    };
    let ran = run(&["--max-ttl", "1h", "-n"]).code(69).stdout("");
    ran.says(&[&names[1], "does not vote yet", "`tenure init`", "cannot be reached", "--wait"]);
    // Without that it would wait, and say what for.
    let waits = Tenure::new().env("TENURE_SERVERS", &urls).args(["--max-ttl", "1h", &key]);
    let words = waits.sh("echo ran").start().first_words();
    assert!(
        words.contains("waiting for the lock") && words.contains("does not vote yet"),
        "{words}"
    );
    run(&["--ttl", "500ms", "--max-ttl", "0.5", "--wait", "20"]).code(0).stdout("ran\n");
    eventually(PATIENCE, "it votes", || {
        let ran = status(&urls, &["--max-ttl", "0.5", &key]).run().code(1).silent();
        ran.stdout.contains(&format!("{} may vote\n", names[1]))
    });
    run(&["--max-ttl", "29"]).code(64).stdout("").says(&["max_ttl is 29s", "own TTL"]);
    let ran = status(&urls, &["--max-ttl", "0", &key]).run().code(64).stdout("");
    ran.says(&["the TTL is zero"]);
    let acquire = Tenure::to("acquire").env("TENURE_SERVERS", &urls);
    let ran = acquire.args(["--ttl", "9", "--max-ttl", "8", &key]).run().code(64).stdout("");
    ran.says(&["max_ttl is 8s"]);
}

#[test]
fn without_a_majority_status_still_lists_each_server() {
    let ((servers, urls, [one, two, three]), key) = (servers(), key());
    servers[1].kill();
    servers[2].kill();
    let ran =
        status(&urls, &[&key]).run().code(69).says(&["could not determine whether the lock", &key]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[0], format!("{one} may vote"));
    assert!(lines[1].starts_with(&format!("{two} cannot be reached")), "{ran:?}");
    assert!(lines[2].starts_with(&format!("{three} cannot be reached")), "{ran:?}");
    let json = status(&urls, &["--json", &key]).run().code(69).stdout;
    let unknown = format!("{{\"key\":\"{key}\",\"held\":null,\"nodes\":[{{\"node\":\"{one}\",");
    assert!(json.starts_with(&unknown), "{json}");
}

/// Each run is a client that has never met the servers before.
#[test]
fn a_run_gets_no_lock_that_a_server_forgot_whatever_its_uptime() {
    let servers = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().shim().start());
    opened(&servers);
    let (key, urls) = (key(), servers.each_ref().map(Server::url));
    let acquire = Tenure::to("acquire").url(&urls[0]).url(&urls[1]).url("redis://127.0.0.1:1");
    acquire.args(["--ttl", "60", &key]).run().code(0);
    servers[1].restart_empty();
    servers[1].clock().step_ms(3_600_000);
    for _ in 0..3 {
        let run = Tenure::new().url(&urls[0]).url(&urls[1]).url(&urls[2]);
        let ran = run.args(["-n", "--max-ttl", "60", &key]).sh("echo ran").run();
        ran.code(69).stdout("").says(&["does not vote yet", "it votes in"]);
    }
}

#[test]
fn init_opens_new_servers_once_and_says_what_it_did() {
    let servers = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
    let urls = servers.each_ref().map(Server::url).join(",");
    let init = |urls: &str, words: &[&str]| {
        Tenure::to("init").env("TENURE_SERVERS", urls).args(words.iter().copied()).run()
    };
    let name = |server: &Server| format!("127.0.0.1:{}", server.port().unwrap());
    let all = |word: &str| servers.iter().map(|of| name(of) + word).collect::<String>();
    init(&urls, &[]).code(0).stdout(&all(" opened\n"));
    init(&urls, &[]).code(0).stdout(&all(" was open already\n"));
    Tenure::new().env("TENURE_SERVERS", &urls).args(["-n", &key()]).sh("echo ran").run().code(0);
    // One that was a replica since then is not opened by hand, and one is down.
    assert!(servers[1].cmd(&["DEBUG", "CHANGE-REPL-ID"]).is_ok());
    servers[2].kill();
    let ran = init(&urls, &[]).code(69).says(&["2 of 3 servers were not opened"]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    let not = |server: &Server| format!("{} not opened: ", name(server));
    assert_eq!(lines[0], name(&servers[0]) + " was open already");
    assert!(lines[1].starts_with(&not(&servers[1])) && lines[1].contains("it votes in"), "{ran:?}");
    assert!(lines[2].starts_with(&not(&servers[2])) && lines[2].contains("reached"), "{ran:?}");
    init("file:///tmp/x", &[]).code(64).stdout("").says(&["only servers"]);
    init(&urls, &["--max-ttl", "0"]).code(64).stdout("").says(&["TTL"]);
    init("", &[]).code(64).stdout("").says(&["no server is named"]);
}
