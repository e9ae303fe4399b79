//! A forked child has the memory of its parent's locks, and no right to them.

use tenure::{AcquireError, ExtendError, LossReason};
use tenure_testkit::unique_key;

use super::{
    TTL, connect, is_free,
    program::{self, Program},
    shared, value,
};

#[test]
fn a_forked_child_holds_nothing_and_releases_nothing() {
    let key = unique_key("fork");
    let server = shared().url();
    let parent = Program::start("fork", &[("SERVER", &server), ("KEY", &key)]);
    only_the_parent_holds(parent, &key);
}

/// In a PID namespace of its own a child may have its parent's number.
#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_with_the_pid_of_its_parent_holds_nothing_either() {
    let key = unique_key("fork-namespace");
    let settings = [("SERVER", shared().url()), ("KEY", key.clone()), ("NAMESPACE", "new".into())];
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let parent = Program::start_as_init("fork", &settings);
    only_the_parent_holds(parent, &key);
}

fn only_the_parent_holds(mut parent: Program, key: &str) {
    let token = parent.hear();
    assert_eq!(parent.hear(), "the child is gone");
    assert_eq!(value(shared(), key).as_deref(), Some(token.as_bytes()), "the child released it");
    parent.tell("release");
    parent.end_well();
    assert!(is_free(shared(), key), "the parent held it to the end");
}

pub(super) fn parent() {
    let id = std::process::id();
    let has_namespace = std::env::var_os("NAMESPACE").is_some();
    let client = connect(&program::setting("SERVER"));
    let lock = client.lock(program::setting("KEY")).ttl(TTL);
    let guard = lock.acquire().unwrap();
    program::say(guard.token().as_str());
    if has_namespace {
        assert_eq!(id, 1, "the first of its namespace");
        #[expect(unsafe_code, reason = "the safe one of rustix is for other flags, too")]
        // SAFETY: only processes that are forked from now on are concerned.
        let made = unsafe { libc::unshare(libc::CLONE_NEWPID) };
        assert_eq!(made, 0, "no right to make a namespace");
    }
    #[expect(unsafe_code, reason = "no safe crate forks")]
    // SAFETY: the child is one thread, which uses the locks of the parent's library, whose engine
    // has none of them at rest, and the allocator, which the C library makes fit for use; it ends
    // by `_exit` without running anything of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ended = std::panic::catch_unwind(move || {
            assert_eq!(std::process::id() == id, has_namespace);
            assert_eq!((guard.valid_for(), guard.lost()), (None, LossReason::EngineStopped));
            assert!(matches!(guard.extend(TTL), Err(ExtendError::EngineStopped { .. })));
            assert!(matches!(lock.try_acquire(), Err(AcquireError::EngineStopped { .. })));
            assert!(matches!(
                lock.resume(guard.token().clone()),
                Err(AcquireError::EngineStopped { .. })
            ));
            assert!(lock.force_release().is_err());
            drop(guard);
            client.close().unwrap();
        });
        #[expect(unsafe_code, reason = "a forked child must not run its parent's exit handlers")]
        // SAFETY: it ends the process, and nothing else.
        unsafe {
            libc::_exit(i32::from(ended.is_err()));
        }
    }
    assert!(child > 0, "cannot fork");
    let pid = rustix::process::Pid::from_raw(child);
    let status = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
    let (_, status) = status.unwrap().expect("it ended");
    assert_eq!(status.exit_status(), Some(0), "in the child");
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    program::say("the child is gone");
    program::heed();
    guard.release().expect("still held");
}
