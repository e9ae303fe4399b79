//! Which process waits: a channel that names it, and whether it is still there.

use tenure_core::Channel;

use crate::random;

/// The channel of a client in this process: `tenure:PID.START.RANDOM`.
///
/// The start tells a process from a later one with the same number.
pub(super) fn own_channel() -> Channel {
    let pid = std::process::id();
    let start = started(pid).unwrap_or(0);
    Channel::named(&format!("tenure:{pid}.{start}.{:016x}", random::jitter()))
}

/// Whether the process that a channel names is there. A stopped one is: it costs one claim.
pub(super) fn is_there(channel: &Channel) -> bool {
    let named = || {
        let name = std::str::from_utf8(channel.as_bytes()).ok()?;
        let mut parts = name.strip_prefix("tenure:")?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    named().is_some_and(|(pid, start): (u32, u64)| started(pid) == Some(start))
}

/// When a process started, in ticks since the boot; `None` when there is none.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the start is the 20th field behind it.
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    let is_dead = |state: &str| state == "Z" || state == "X";
    fields.next().filter(|state| !is_dead(state))?;
    fields.nth(18)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn started(pid: u32) -> Option<u64> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::test_kill_process(pid).ok().map(|()| 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_runs_is_there() {
        let channel = own_channel();
        assert!(is_there(&channel));
        let own = std::process::id().to_string();
        let later = channel.to_string().replace(&format!("{own}."), &format!("{own}.1"));
        assert!(!is_there(&Channel::named(&later)), "{later}");
        for name in ["tenure:", "tenure:x.y.z", "other", "tenure:4294967295.1.0"] {
            assert!(!is_there(&Channel::named(name)), "{name}");
        }
    }
}
