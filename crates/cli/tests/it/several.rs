//! Several servers: which of them vote, and what is said of the others.

use tenure_testkit::{Server, ServerKind, eventually};

use crate::tool::{PATIENCE, Tenure, key};

/// One that keeps its keys, one that has just started and says nothing of that, and one more that
/// keeps its keys: the addresses, and what they are called.
fn servers() -> ([Server; 3], String, [String; 3]) {
    let servers = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
    let [one, young, three] = servers.each_ref().map(Server::url);
    let names = servers.each_ref().map(|server| format!("127.0.0.1:{}", server.port().unwrap()));
    (servers, format!("{one}?durable=yes,{young},{three}?durable=yes"), names)
}

fn status(urls: &str, words: &[&str]) -> Tenure {
    Tenure::to("status").env("TENURE_SERVERS", urls).args(words.iter().copied())
}

#[test]
fn status_says_of_each_whether_it_votes() {
    let ((servers, urls, [one, young, three]), key) = (servers(), key());
    servers[2].kill();
    let ran = status(&urls, &[&key]).run().code(1).silent();
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[..2], ["free".to_owned(), format!("{one} may vote")]);
    let why = format!("{young} may have forgotten locks and does not vote yet: it started about ");
    assert!(lines[2].starts_with(&why) && lines[2].contains("`?durable=yes`"), "{ran:?}");
    assert!(lines[3].starts_with(&format!("{three} cannot be reached")), "{ran:?}");
    assert_eq!(lines.len(), 4, "{ran:?}");
    let json = status(&urls, &["--json", &key]).run().code(1).stdout;
    assert!(json.contains("\"held\":false,"), "{json}");
    let votes = format!("\"nodes\":[{{\"node\":\"{one}\",\"votes\":true,\"reason\":null}},");
    let votes_not = format!("{{\"node\":\"{young}\",\"votes\":false,\"reason\":\"the server ");
    assert!(json.contains(&(votes + &votes_not)), "{json}");
}

/// Whether it votes depends on how long a lock may be held that it has forgotten.
#[test]
fn the_longest_ttl_says_how_long_a_server_is_doubted() {
    let ((servers, urls, names), key) = (servers(), key());
    servers[2].kill();
    let run = |words: &[&str]| {
        let run = Tenure::new().env("TENURE_SERVERS", &urls).args(words.iter().copied());
        run.args([&key]).sh("echo ran").run()
    };
    let ran = run(&["--longest-ttl", "1h", "-n"]).code(69).stdout("");
    ran.says(&[&names[1], "does not vote yet", "`?durable=yes`", "cannot be reached", "--wait"]);
    // Without that it would wait, and say what for.
    let waits = Tenure::new().env("TENURE_SERVERS", &urls).args(["--longest-ttl", "1h", &key]);
    let words = waits.sh("echo ran").start().first_words();
    assert!(
        words.contains("waiting for the lock") && words.contains("does not vote yet"),
        "{words}"
    );
    run(&["--ttl", "500ms", "--longest-ttl", "0.5", "--wait", "20"]).code(0).stdout("ran\n");
    // Each new client goes by what the server tells of its age, in whole seconds.
    eventually(PATIENCE, "it votes", || {
        let ran = status(&urls, &["--longest-ttl", "0.5", &key]).run().code(1).silent();
        ran.stdout.contains(&format!("{} may vote\n", names[1]))
    });
    run(&["--longest-ttl", "29"]).code(64).stdout("").says(&["longest_ttl is 29s", "own TTL"]);
    let ran = status(&urls, &["--longest-ttl", "0", &key]).run().code(64).stdout("");
    ran.says(&["the TTL is zero"]);
    let acquire = Tenure::to("acquire").env("TENURE_SERVERS", &urls);
    let ran = acquire.args(["--ttl", "9", "--longest-ttl", "8", &key]).run().code(64).stdout("");
    ran.says(&["longest_ttl is 8s"]);
}

#[test]
fn too_few_to_tell_are_named_all_the_same() {
    let ((servers, urls, [one, two, three]), key) = (servers(), key());
    servers[1].kill();
    servers[2].kill();
    let ran = status(&urls, &[&key]).run().code(69).says(&["cannot tell whether the lock", &key]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[0], format!("{one} may vote"));
    assert!(lines[1].starts_with(&format!("{two} cannot be reached")), "{ran:?}");
    assert!(lines[2].starts_with(&format!("{three} cannot be reached")), "{ran:?}");
    let json = status(&urls, &["--json", &key]).run().code(69).stdout;
    let unknown = format!("{{\"key\":\"{key}\",\"held\":null,\"nodes\":[{{\"node\":\"{one}\",");
    assert!(json.starts_with(&unknown), "{json}");
}
