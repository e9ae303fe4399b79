//! The processes below the tool, as `/proc` shows them.

use std::{collections::HashSet, fs, io};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
        set_child_subreaper, set_parent_process_death_signal,
    },
};
use tenure::Shown;

/// Makes the tool the parent of every process below it whose own parent ends, so that none is lost
/// from sight.
pub(crate) fn adopt_orphans() {
    // Since Linux 3.4; without it those that put themselves into the background go unseen.
    _ = set_child_subreaper(Some(getpid()));
}

/// Makes the calling process die with the thread that started it.
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// A process below the tool.
#[derive(Debug)]
pub(crate) struct ProcessInfo {
    /// Its number.
    pub(crate) pid: Pid,
    /// Its name.
    pub(crate) name: String,
    /// Its process group.
    pub(crate) group: i32,
    /// Distinguishes it from a later process with the same number.
    started: u64,
    is_dead: bool,
}

impl ProcessInfo {
    /// The process with this number now.
    pub(crate) fn find(pid: Pid) -> Option<Self> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&stat)) // tidy: allow
    }

    /// `PID (name) STATE PARENT GROUP …`, where the name may hold anything.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let (before, behind) = stat.rsplit_once(") ")?;
        let (_, name) = before.split_once(" (")?;
        let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let state = fields.first()?;
        let threads: i32 = number(17)?;
        Some(Self {
            pid,
            name: Shown::new(name).to_string(),
            group: number(2)?,
            started: fields.get(19)?.parse().ok()?,
            // A process whose first thread has ended looks dead, and works on in the others.
            is_dead: matches!(*state, "Z" | "X") && threads <= 1,
        })
    }

    /// Whether both are the same process, whatever it has become meanwhile.
    fn is(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// Sends it a signal, and never another process that has got its number meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the system, such as EPERM. That it has ended is none.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let handle = pidfd_open(self.pid, PidfdFlags::empty());
        if Self::find(self.pid).is_none_or(|now| !now.is(self)) {
            return Ok(());
        }
        let sent = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            Err(Errno::SRCH) => return Ok(()),
            // Before Linux 5.3, or no descriptor is left: its number is still its own, as far as
            // anybody can know.
            Err(_) => kill_process(self.pid, signal),
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// All processes below the tool that have not ended, without these and those below them; none where
/// `/proc` does not show them.
pub(crate) fn descendants(without: &[ProcessInfo]) -> Vec<ProcessInfo> {
    let own = getpid();
    // The /proc of another process namespace has other processes under our numbers.
    let of_self = fs::read_link("/proc/self").ok();
    let named = of_self.as_deref().and_then(|name| name.to_str()?.parse().ok());
    if named != Some(own.as_raw_nonzero().get()) {
        return Vec::new();
    }
    let mut found: Vec<ProcessInfo> = Vec::new();
    let mut met: HashSet<Pid> = HashSet::new();
    // More than once, since those whose parents end meanwhile become the tool's own children.
    for _ in 0..MAX_PASSES {
        let mut next: Vec<Pid> = children(own).into_iter().filter(|pid| met.insert(*pid)).collect();
        if next.is_empty() {
            break;
        }
        while let Some(child) = next.pop().map(ProcessInfo::find) {
            let Some(child) = child else { continue };
            if without.iter().any(|other| other.is(&child)) {
                continue;
            }
            next.extend(children(child.pid).into_iter().filter(|pid| met.insert(*pid)));
            if !child.is_dead {
                found.push(child);
            }
        }
    }
    found
}

/// Those that start others without end never let a look come to its end.
const MAX_PASSES: usize = 8;

/// The children of a process, its threads' together: the kernel lists them, so this takes as long
/// as there are processes below the tool, and not as there are on the host. The list may miss one
/// while another ends.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.map(|list| {
        let pids = list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        pids.collect::<Vec<_>>()
    });
    pids.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(state: &str, threads: u32) -> ProcessInfo {
        let stat = format!(
            "4711 (a) b (c\n)) {state} 1 4700 4699 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 815 1"
        );
        ProcessInfo::parse(Pid::from_raw(4711).unwrap(), &stat).unwrap()
    }

    #[test]
    fn a_name_may_hold_anything() {
        let process = parsed("S", 1);
        assert_eq!(process.name, "a) b (c\\n)");
        assert_eq!((process.group, process.started, process.is_dead), (4700, 815, false));
    }

    #[test]
    fn a_process_is_alive_while_one_of_its_threads_is() {
        assert!(parsed("Z", 1).is_dead);
        assert!(!parsed("Z", 2).is_dead);
    }

    #[test]
    fn a_reused_process_number_gets_no_signal() {
        let mut sleep = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let mut process = ProcessInfo::find(Pid::from_child(&sleep)).unwrap();
        process.started += 1;
        process.signal(Signal::KILL).unwrap();
        assert!(sleep.try_wait().unwrap().is_none(), "another process was killed");
        process.started -= 1;
        process.signal(Signal::KILL).unwrap();
        sleep.wait().unwrap();
    }
}
