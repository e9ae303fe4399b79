//! Servers that do to a client what they should not: endless, huge, nested, wrong, late, shifted,
//! silent, slow and broken replies; to the greeting, an acquisition, a renewal and a release; at
//! one server, and at one of three.
//!
//! Whatever it is: a guard exists only where the key does, no holder is reported where there is
//! none, nothing is said to be released that is not, a loss is reported before the key can end, and
//! memory stays where it was.

mod client;
mod cut;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use tenure_testkit::{FakeServer, Server, ServerKind, Trick, eventually, unique_key};

pub(crate) use client::PROGRAMS;

use crate::{LIMIT, fake::ScriptRequest, program::Program, servers};

/// Which replies are spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    None,
    Greeting,
    Acquire,
    Renewal,
    Release,
}

impl Stage {
    fn means(self, command: &[Vec<u8>]) -> bool {
        match (self, ScriptRequest::read(command).map(|asked| asked.script)) {
            (Self::Greeting, None) => matches!(command[0].as_slice(), b"HELLO" | b"INFO"),
            (Self::Acquire, Some("acquire" | "confirm")) => true,
            (Self::Renewal, Some("renew")) => true,
            (Self::Release, Some("release")) => true,
            _ => false,
        }
    }
}

/// A client before one server, or three, of which the first is hostile.
struct Scene<'a> {
    honest: &'a [Server],
    key: &'a str,
    stage: Arc<Mutex<Stage>>,
    client: Program,
    _hostile: FakeServer,
}

/// What became of it, for the table.
#[derive(Debug)]
struct Outcome {
    /// From the end of the lease to its loss, in ms: below zero is in time.
    lateness: i64,
    /// The longest that an answer took, in ms.
    answer: i64,
    /// Growth of the client's memory at its most, in KiB.
    memory: i64,
}

impl<'a> Scene<'a> {
    fn new(honest: &'a [Server], key: &'a str, trick: Trick) -> Self {
        servers::open(honest);
        let stage = Arc::new(Mutex::new(Stage::None));
        let of_server = Arc::clone(&stage);
        let is_meant = move |command: &[Vec<u8>]| of_server.lock().unwrap().means(command);
        let hostile = FakeServer::before(&honest[0], trick, is_meant);
        let others = honest[1..].iter().map(Server::url);
        let urls = [hostile.url()].into_iter().chain(others).map(|url| url + "?durable=yes");
        let urls: Vec<_> = urls.collect();
        let settings = [("URLS", urls.join(",")), ("KEY", key.to_owned())];
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let mut client = Program::start("be a hostile server's client", &settings);
        assert_eq!(client.hear(), "ready");
        Self { honest, key, stage, client, _hostile: hostile }
    }

    fn ask(&mut self, stage: Stage, what: &str) -> ClientReply {
        *self.stage.lock().unwrap() = stage;
        self.client.tell(what);
        let said = self.client.hear();
        *self.stage.lock().unwrap() = Stage::None;
        ClientReply(said)
    }

    /// On how many servers the key is that token.
    fn having(&self, token: &str) -> usize {
        let has = |server: &&Server| servers::get(server, self.key).text() == Some(token);
        self.honest.iter().filter(has).count()
    }

    fn is_free(&self) -> bool {
        self.honest.iter().all(|server| !servers::exists(server, self.key))
    }

    fn majority(&self) -> usize {
        self.honest.len() / 2 + 1
    }

    /// Acquires and releases; in one of three that goes whatever the first server does.
    fn acquires(&mut self, stage: Stage) -> i64 {
        let said = self.ask(stage, "acquire");
        match said.word() {
            "granted" => assert!(self.having(said.token()) >= self.majority(), "{said}"),
            "unknown" => assert!(self.honest.len() == 1, "{said}"),
            _ => panic!("nobody holds it: {said}"),
        }
        let answer = said.number();
        self.ask(Stage::None, "drop");
        eventually(LIMIT, "nothing is left of it", || self.is_free());
        answer
    }

    fn holds(&mut self) -> ClientReply {
        let said = self.ask(Stage::None, "acquire");
        assert_eq!(said.word(), "granted", "{said}");
        said
    }

    /// Holds on, or reports the loss in time. Returns how late that was.
    fn loses(&mut self) -> i64 {
        let held = self.holds();
        let said = self.ask(Stage::Renewal, "wait");
        let mut lateness = said.number();
        match said.word() {
            "held" => assert!(self.having(held.token()) >= self.majority(), "{said}"),
            "expired" => assert!(self.honest.len() == 1, "two of three renew it: {said}"),
            _ => panic!("nobody took it: {said}"),
        }
        if self.honest.len() > 1 {
            let frozen: Vec<_> = self.honest[1..].iter().map(Server::freeze_process).collect();
            let said = self.ask(Stage::Renewal, "wait long");
            assert_eq!(said.word(), "expired", "{said}");
            lateness = said.number();
            drop(frozen);
        }
        self.ask(Stage::None, "drop");
        eventually(LIMIT, "nothing is left of it", || self.is_free());
        lateness
    }

    fn releases(&mut self) -> i64 {
        let held = self.holds();
        let said = self.ask(Stage::Release, "release");
        match said.word() {
            "released" => assert!(self.having(held.token()) < self.majority(), "{said}"),
            "unconfirmed" => assert!(self.honest.len() == 1, "{said}"),
            _ => panic!("it was held until then: {said}"),
        }
        eventually(LIMIT, "nothing is left of it", || self.is_free());
        said.number()
    }

    fn plays(mut self) -> Outcome {
        let greeted = self.acquires(Stage::Greeting);
        let acquired = self.acquires(Stage::Acquire);
        let lateness = self.loses();
        let released = self.releases();
        let memory = self.ask(Stage::None, "memory").number();
        Outcome { lateness, answer: greeted.max(acquired).max(released), memory }
    }
}

/// A line of the client: a word, a number, a token or a reason.
struct ClientReply(String);

impl ClientReply {
    fn word(&self) -> &str {
        self.0.split(' ').next().unwrap()
    }

    fn number(&self) -> i64 {
        self.0.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn token(&self) -> &str {
        self.0.split(' ').nth(2).unwrap()
    }
}

impl fmt::Display for ClientReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Plays every trick, some at a time, and prints the table.
fn all_are_played(servers: usize) {
    let key = unique_key("hostile");
    let tricks = Mutex::new(Trick::all(&key).into_iter());
    let lines = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let kinds = ServerKind::ALL.into_iter().take(servers);
                let honest: Vec<_> = kinds.map(Server::start).collect();
                loop {
                    let Some((name, trick)) = tricks.lock().unwrap().next() else { return };
                    let _alone = is_flood(name)
                        .then(|| FLOOD.lock().unwrap_or_else(PoisonError::into_inner));
                    let outcome = Scene::new(&honest, &key, trick).plays();
                    let Outcome { lateness, answer, memory } = outcome;
                    let line = format!("{name:26} {lateness:>8} {answer:>8} {memory:>8}");
                    lines.lock().unwrap().push(line);
                    assert!(lateness <= AFTER_VALIDITY, "{name}: lost {lateness} ms late");
                    assert!(answer < MAX_ANSWER, "{name}: {answer} ms for an answer");
                    assert!(memory < MAX_MEMORY, "{name}: {memory} KiB");
                }
            });
        }
    });
    let lines = lines.into_inner().unwrap();
    #[expect(clippy::print_stdout, reason = "figures are part of the output of tests")]
    {
        println!("one hostile server of {servers}: ms late, ms to an answer, KiB of memory");
        println!("{}", lines.join("\n"));
    }
}

#[test]
fn a_hostile_server_neither_delays_a_loss_nor_fills_memory_nor_is_believed() {
    all_are_played(1);
}

#[test]
fn a_hostile_server_among_three_counts_as_silent() {
    all_are_played(3);
}

/// What goes on for as long as the client reads it. One at a time: each keeps processors busy.
fn is_flood(name: &str) -> bool {
    ["of 512 MiB", "of 1 MiB", "pushes without", "changes without"].iter().any(|f| name.contains(f))
}

static FLOOD: Mutex<()> = Mutex::new(());

/// Most of the time is spent waiting for leases to end.
const AT_A_TIME: usize = 3;

/// In ms: validity ends so much before the key, since clocks drift (1 % of a second, and 2 ms).
const AFTER_VALIDITY: i64 = 12;

/// In ms: the client waits for a tenth of that, and some of it again for a greeting.
const MAX_ANSWER: i64 = 5_000;

/// In KiB: 32 MiB.
const MAX_MEMORY: i64 = 32 * 1_024;
