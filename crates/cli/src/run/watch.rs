//! A command under a lease: what happens to the one, and what that means for the other.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGCHLD, SIGCONT, SIGKILL, SIGTERM, SIGTTIN, SIGTTOU};
use tenure::{LockGuard, LossReason};

use crate::{
    child::{Child, End, State, Terminal, stop_this_group},
    events::{Event, Events},
};

/// A command that runs under a lease.
pub(super) struct Watch<'a> {
    child: Child,
    guard: &'a LockGuard,
    terminal: Option<&'a Terminal>,
    /// How long the command has between SIGTERM and SIGKILL.
    grace: Duration,
    /// The end of the lease, when it was looked at last.
    deadline: Instant,
    /// Once the command has been told to end: why, and when it is killed.
    ending: Option<Ending>,
}

struct Ending {
    reason: LossReason,
    kill_at: Instant,
    killed: bool,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Ended {
    /// How the command ended.
    pub(super) end: End,
    /// Why the lease was lost, if it was.
    pub(super) lost: Option<LossReason>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        child: Child,
        guard: &'a LockGuard,
        terminal: Option<&'a Terminal>,
        grace: Duration,
    ) -> Self {
        Self { child, guard, terminal, grace, deadline: Instant::now(), ending: None }
    }

    /// Waits for the command's end, and brings it about when the lease is lost.
    pub(super) fn until_ended(mut self, events: &mut Events) -> Ended {
        let mut lost = pin!(self.guard.lost());
        loop {
            match self.child.look() {
                State::Ended(end) => {
                    self.end_others(events);
                    return Ended { end, lost: self.ending.map(|ending| ending.reason) };
                }
                State::Stopped(signal) => {
                    self.stopped(signal);
                    continue;
                }
                State::Running => {}
            }
            let until = self.look(events, lost.as_mut());
            match events.next(until) {
                Some(Event::Signal(SIGCONT)) => self.go_on(),
                // Whatever else it is, the loop looks at everything again.
                Some(Event::Signal(SIGCHLD) | Event::Woken) | None => {}
                Some(Event::Signal(signal)) => self.child.signal(signal),
            }
        }
    }

    /// Ends the command if the lease is lost, or is about to be; returns when to look again.
    fn look(
        &mut self,
        events: &Events,
        lost: Pin<&mut impl Future<Output = LossReason>>,
    ) -> Option<Instant> {
        let now = Instant::now();
        if let Some(ending) = &mut self.ending {
            if !ending.killed && ending.kill_at <= now {
                self.child.signal(SIGKILL);
                ending.killed = true;
            }
            return (!ending.killed).then_some(ending.kill_at);
        }
        let left = self.guard.valid_for();
        if let Some(reason) = events.poll(lost) {
            // A lease that ran out had its warning below, unless this process was stopped
            // meanwhile: then there is no time left.
            let grace = if reason == LossReason::Expired { Duration::ZERO } else { self.grace };
            let last = self.deadline.checked_sub(RESERVE).unwrap_or(now);
            return Some(self.end(reason, last.min(now + grace)));
        }
        let left = left.unwrap_or_default();
        self.deadline = now + left;
        let notice = self.grace + RESERVE;
        if left <= notice {
            return Some(self.end(LossReason::Expired, now + left.saturating_sub(RESERVE)));
        }
        Some(now + (left - notice))
    }

    fn end(&mut self, reason: LossReason, kill_at: Instant) -> Instant {
        self.child.signal(SIGTERM);
        self.ending = Some(Ending { reason, kill_at, killed: false });
        kill_at
    }

    /// Ends what the command has started and left, once the lease is lost: it works under the lock
    /// as well. Without a loss it goes on, as it does under a shell.
    fn end_others(&self, events: &mut Events) {
        let Some(ending) = &self.ending else { return };
        let killed_by = ending.kill_at + REAPING;
        while self.child.has_left_others() && Instant::now() < killed_by {
            if ending.kill_at <= Instant::now() {
                self.child.signal(SIGKILL);
            }
            _ = events.next(Some(Instant::now() + LOOK));
        }
    }

    /// The command was stopped: by Ctrl-Z, or because it wants a terminal that it does not own.
    ///
    /// Under a shell the whole job stops, the tool too, so the lease is not renewed meanwhile.
    fn stopped(&mut self, signal: i32) {
        // Without a terminal whoever has stopped it will let it go on.
        let Some(terminal) = self.terminal.filter(|terminal| terminal.has_job_control()) else {
            return;
        };
        let wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
        if wants_terminal && terminal.hand_over(self.child.group()) {
            self.go_on();
            return;
        }
        terminal.take_back();
        stop_this_group(signal);
        // One that wants the terminal goes on when SIGCONT comes, not when the kernel has refused
        // to stop the tool: it would be stopped again at once, and so on for ever.
        if !wants_terminal {
            self.go_on();
        }
    }

    /// Lets a stopped command go on, with the terminal if the tool's group has it; not under a
    /// lease that ended meanwhile, which the next look finds.
    fn go_on(&self) {
        if self.guard.valid_for().is_none() {
            return;
        }
        if let Some(terminal) = self.terminal {
            terminal.hand_over(self.child.group());
        }
        self.child.signal(SIGCONT);
    }
}

/// The command is killed this long before its lease can end: a busy machine delivers late.
pub(crate) const RESERVE: Duration = Duration::from_millis(100);

/// How often the tool looks whether all of a group has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How long the killed are waited for: their own parent may never reap them.
const REAPING: Duration = Duration::from_millis(500);
