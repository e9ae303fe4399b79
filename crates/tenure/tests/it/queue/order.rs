//! First come, first served, among waiters that stay connected.

use std::{fs, path::Path, thread};

use tenure::blocking::Client;
use tenure_testkit::{ServerKind, TempDir, scale, unique_key};

use super::line::{self, Line};
use crate::{
    contract::{
        place::{Place, Store},
        subject::Way,
    },
    program::Program,
    secs,
};

const STORES: [Store; STORE_COUNT] = [
    Store::Memory,
    #[cfg(feature = "sqlite")]
    Store::File,
    Store::Server(ServerKind::Redis70),
    Store::Server(ServerKind::Valkey81),
    Store::Server(ServerKind::Valkey91),
];
const STORE_COUNT: usize = if cfg!(feature = "sqlite") { 5 } else { 4 };

/// Does it in every store at once.
fn in_each_store(test: impl Fn(&Place) + Sync) {
    thread::scope(|scope| {
        let test = &test;
        let ran: Vec<_> = STORES
            .map(|store| (store, scope.spawn(move || test(&Place::new(store, Way::Blocking)))))
            .into();
        for (store, ran) in ran {
            assert!(ran.join().is_ok(), "in {store:?}");
        }
    });
}

/// Some of one client and some of others, in turns: the client makes no difference.
#[test]
fn waiters_are_served_in_arrival_order() {
    in_each_store(|place| {
        let clients = [(); 4].map(|()| Client::connect(&place.address()).unwrap());
        let lock = |client: &Client| client.lock(&place.key).ttl(secs(60));
        let guard = lock(&clients[0]).acquire().unwrap();
        let mut line = Line::before(lock(&clients[0]));
        for who in 0..scale(16, 100) {
            // Two in a row of each.
            line.join(&lock(&clients[who / 2 % clients.len()]));
        }
        guard.release().unwrap();
        line.was_served_in_order();
    });
}

#[test]
fn many_waiters_of_one_client_are_served_in_order() {
    let place = Place::new(Store::Server(ServerKind::Valkey91), Way::Blocking);
    let client = Client::connect(&place.address()).unwrap();
    let lock = client.lock(&place.key).ttl(secs(60));
    let guard = lock.acquire().unwrap();
    let mut line = Line::before(lock.clone());
    (0..scale(64, 500)).for_each(|_| line.join(&lock));
    guard.release().unwrap();
    line.was_served_in_order();
}

#[test]
fn waiters_of_many_processes_are_served_in_order() {
    let address = crate::servers::shared(ServerKind::Valkey81).url();
    among_processes(&address);
}

#[test]
#[cfg(feature = "sqlite")]
fn waiters_of_many_processes_at_the_store_are_served_in_order() {
    let directory = TempDir::new();
    among_processes(&format!("file://{}/locks.db", directory.path().display()));
}

fn among_processes(address: &str) {
    let directory = TempDir::new();
    let log = directory.path().join("log");
    let key = unique_key("processes");
    let lock = Client::connect(address).unwrap().lock(&key).ttl(secs(60));
    let guard = lock.acquire().unwrap();
    let line = Line::before(lock);
    let start = || line::start(address, &key, secs(60), &log);
    let mut programs: Vec<_> = (0..scale(4, 16)).map(|_| start()).collect();
    let names: Vec<_> = (0..3 * programs.len()).map(|who| who.to_string()).collect();
    for (who, name) in names.iter().enumerate() {
        let of = who % programs.len();
        line.join_from(&mut programs[of], name);
    }
    guard.release().unwrap();
    programs.iter_mut().for_each(|program| program.tell("end"));
    programs.into_iter().for_each(Program::end_well);
    assert_eq!(lines(&log), names);
}

fn lines(log: &Path) -> Vec<String> {
    fs::read_to_string(log).unwrap().lines().map(Into::into).collect()
}
