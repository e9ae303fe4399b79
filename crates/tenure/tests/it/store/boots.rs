//! Clocks and boots: whose lease is alive, and for how long.

use rusqlite::Connection;
use tenure::{Loss, LossReason, ReleaseError};
use tenure_testkit::{eventually, in_another_time, with_mounts};

use super::{Store, connect, given, seal};
use crate::{
    LIMIT, ms,
    program::{self, Program},
    secs,
};

/// The program: holds the lock until it is asked to release it.
pub(super) fn hold() {
    let lock = connect(&given()).lock("k");
    let guard = lock.try_acquire().unwrap().expect("nobody holds it");
    program::say("held");
    program::heed();
    guard.release().unwrap();
    program::say("released");
    program::heed();
}

/// Ahead and behind, as containers and checkpoints make it.
const AHEAD: [i64; 3] = [100_000, -5, 1];

/// Reproduces: a container with a time namespace of its own shares the store with its host.
#[test]
fn a_lease_taken_in_another_time_namespace_is_held_there_and_here() {
    for ahead in AHEAD {
        let store = Store::new();
        let start =
            |name| Program::start_in(in_another_time(ahead), name, &[("STORE", &store.setting())]);
        let guard = store.lock("k").acquire().unwrap();
        assert_eq!(start("try once in the store").hear(), "granted: false", "{ahead}");
        guard.release().unwrap();
        let mut holder = start("hold in the store");
        assert_eq!(holder.hear(), "held");
        assert!(store.lock("k").try_acquire().unwrap().is_none(), "two hold the lock: {ahead}");
        holder.tell("release");
        assert_eq!(holder.hear(), "released");
        store.lock("k").try_acquire().unwrap().expect("it is free").release().unwrap();
    }
}

/// Both clocks say the same of a TTL.
#[test]
fn waiters_of_two_time_namespaces_are_served_in_order_and_at_the_end_of_a_lease() {
    let store = Store::new();
    let settings = [("STORE", store.setting())];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let guard = store.lock("k").acquire().unwrap();
    let mut waiter = Program::start_in(in_another_time(100_000), "wait in the store", &settings);
    assert_eq!(waiter.hear(), "waits");
    super::waiters::until_waiting(&store, 1);
    guard.release().unwrap();
    assert_eq!(waiter.hear(), "acquired");
    waiter.tell("release");
    assert_eq!(waiter.hear(), "released");
    waiter.tell("end");
    waiter.end_well();

    _ = store.lock("k").ttl(ms(1_500)).acquire().unwrap().detach();
    let mut waiter = Program::start_in(in_another_time(-7), "wait in the store", &settings);
    assert_eq!(waiter.hear(), "waits");
    assert_eq!(waiter.hear(), "acquired");
}

/// A container's own id, bound over the kernel's: the leases of both look like an earlier boot's.
#[test]
fn a_boot_id_that_is_not_the_kernels_is_refused() {
    let id = "/proc/sys/kernel/random/boot_id";
    for mount in [
        format!("echo 0b5d4d2e-6a3f-4b9e-9a5c-2f6f5f0e7a11 > $0/id && mount --bind $0/id {id}"),
        format!(": > $0/id && mount --bind $0/id {id}"),
        format!("mount --bind /proc/sys/kernel/random/uuid {id}"),
        "mount -t tmpfs none /proc/sys/kernel/random && cat /dev/null > $0/id".to_owned(),
        "mount -t tmpfs none /proc/sys/kernel/random \
         && echo 0b5d4d2e-6a3f-4b9e-9a5c-2f6f5f0e7a11 > /proc/sys/kernel/random/boot_id"
            .to_owned(),
        "mount --bind $0 /proc/self/timens_offsets 2> /dev/null; \
         : > $0/id && mount --bind $0/id /proc/$$/timens_offsets"
            .to_owned(),
    ] {
        let store = Store::new();
        let guard = store.lock("k").acquire().unwrap();
        let mut world = with_mounts(&format!("{mount} && exec \"$@\""));
        world.arg(store.directory.path());
        let settings = [("STORE", &*store.setting())];
        let mut program = Program::start_in(world, "try once in the store", &settings);
        let heard = program.hear();
        assert!(["UnfitStore", "Unreachable"].contains(&&*heard), "{mount}: {heard}");
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
        guard.release().unwrap();
    }
}

/// What a host finds after it has rebooted.
fn reboot(sql: &Connection, key: &str) {
    let key = key.as_bytes();
    let reboot = "UPDATE locks SET boot = 'another boot', token_ends_ms = 1, number_ends_ms = 2, \
                  number = number + 1000000000 WHERE key = ?1";
    assert_eq!(sql.execute(reboot, [key]).unwrap(), 1);
    seal::row(sql, key);
}

/// Reproduces: a host reboots while a lock is held. Whether the holder has ended nobody can know,
/// so its lease gets its whole TTL from when it is seen first; also by a look that changes nothing.
#[test]
fn a_lease_of_another_boot_lasts_its_ttl_from_when_it_is_first_read() {
    let store = Store::new();
    let guard = store.lock("k").ttl(secs(2)).acquire().unwrap();
    let before = guard.fencing_token();
    _ = guard.detach();
    reboot(&store.sql(), "k");
    assert!(store.lock("k").try_acquire().unwrap().is_none(), "it may be alive");
    let left = store.lock("k").inspect().unwrap().held.expect("a holder").ttl_left.get();
    assert!(left.is_some_and(|left| left <= secs(2)), "{left:?}: counted from the first sight");
    // A client that saw nothing before.
    let mut last = left;
    eventually(LIMIT, "it ends", || {
        let held = store.lock("k").inspect().unwrap().held;
        let left = held.and_then(|held| held.ttl_left.get());
        assert!(left <= last, "a second sight is no first one");
        last = left;
        left.is_none()
    });
    let next = store.lock("k").try_acquire().unwrap().expect("its TTL is over");
    assert!(next.fencing_token().get() > before.get() + 1_000_000_000);
    next.release().unwrap();
}

/// One that is alive after all, as another kernel's that shares the disk.
#[test]
fn a_live_holder_of_another_boot_renews_its_lease() {
    let store = Store::new();
    let guard = store.lock("k").ttl(secs(2)).acquire().unwrap();
    for _ in 0..3 {
        reboot(&store.sql(), "k");
        assert!(store.lock("k").try_acquire().unwrap().is_none());
        guard.extend(secs(3)).unwrap();
    }
    let _thief = store.lock("k").steal().unwrap();
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))
    ));
}

/// They are not waiting any more.
#[test]
fn waiters_of_another_boot_are_neither_listed_nor_served() {
    let store = Store::new();
    let guard = store.lock("k").acquire().unwrap();
    let mut waiter = store.start("wait in the store", &[]);
    assert_eq!(waiter.hear(), "waits");
    super::waiters::until_waiting(&store, 1);
    drop(waiter);
    reboot(&store.sql(), "k");
    let seen = store.lock("k").inspect().unwrap();
    assert_eq!((seen.waiting, seen.waiters.len()), (Some(0), 0));
    guard.release().unwrap();
    store.lock("k").try_acquire().unwrap().expect("nobody is served before").release().unwrap();
}

/// Each name was locked once, before the host rebooted.
#[test]
fn rows_of_earlier_boots_are_taken_over_and_end() {
    let store = Store::new();
    let client = connect(&store.file());
    for number in 0..20 {
        client.lock(format!("k{number}")).acquire().unwrap().release().unwrap();
    }
    let sql = store.sql();
    (0..20).for_each(|number| reboot(&sql, &format!("k{number}")));
    let count = |which: &str| -> i64 {
        let select = format!("SELECT count(*) FROM locks WHERE {which}");
        sql.query_row(&select, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("boot = 'another boot'"), 20);
    // Twenty commands, each with a client of its own.
    for _ in 0..20 {
        store.lock("other").acquire().unwrap().release().unwrap();
    }
    assert_eq!(count("boot = 'another boot'"), 0);
    assert_eq!(count("number_ends_ms <= 2 AND key <> x''"), 0, "numbers live on for a day");
}
