//! A command under a lease: what happens to the one, and what that means for the other.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use signal_hook::consts::{SIGCHLD, SIGCONT, SIGTERM, SIGTTIN, SIGTTOU};
use tenure::{LockGuard, LossReason};

use super::schedule::{Schedule, Step};
use crate::{
    child::{Child, End, State, Terminal},
    events::{Event, Events},
    messages::say,
    system::{Deadline, Moment, Process, stop_this_group},
};

/// A command that runs under a lease.
pub(super) struct Watch<'a> {
    child: Child,
    guard: &'a LockGuard,
    terminal: Option<&'a Terminal>,
    /// Where inner tools read when they are killed.
    deadline: &'a Deadline,
    schedule: Schedule,
    /// Once the command has been told to end.
    ending: Option<Ending>,
    /// When SIGTERM was handed on last.
    term_handed_on: Option<Moment>,
}

/// A command that was told to end, whether it wants to or not.
struct Ending {
    /// The loss; `None` when an outer tool ends this one.
    reason: Option<LossReason>,
    kill_at: Moment,
    /// It was said what cannot be killed.
    survivors_were_named: bool,
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
        deadline: &'a Deadline,
        grace: Duration,
    ) -> Self {
        let schedule = Schedule::new(grace, Moment::now());
        let (ending, term_handed_on) = (None, None);
        Self { child, guard, terminal, deadline, schedule, ending, term_handed_on }
    }

    /// Waits for the command's end, and brings it about when the lease is lost.
    pub(super) fn until_ended(mut self, events: &mut Events) -> Ended {
        let mut lost = pin!(self.guard.lost());
        let end = loop {
            match self.child.look() {
                State::Ended(end) => break end,
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
                Some(Event::Signal(signal)) => self.hand_on(signal),
            }
        };
        self.end_others(events);
        Ended { end, lost: self.ending.and_then(|ending| ending.reason) }
    }

    /// Ends the command if the lease is lost, or is about to be; returns when to look again.
    fn look(
        &mut self,
        events: &Events,
        lost: Pin<&mut impl Future<Output = LossReason>>,
    ) -> Option<Moment> {
        let now = Moment::now();
        if self.ending.is_some() {
            return Some(self.kill_when_due(now));
        }
        let left = self.guard.valid_for();
        if let Some(reason) = events.poll(lost) {
            let kill_at = self.schedule.after_loss(&reason, now);
            return Some(self.end(Some(reason), kill_at));
        }
        match self.schedule.step(now, left.unwrap_or_default()) {
            Step::LookAt(at) => Some(at),
            Step::EndBy(at) => Some(self.end(Some(LossReason::Expired), at)),
        }
    }

    /// Tells the command and all below it to end, and inner tools by when.
    fn end(&mut self, reason: Option<LossReason>, kill_at: Moment) -> Moment {
        // Before the signal, which makes them look.
        self.deadline.tell(kill_at);
        self.child.signal_all(SIGTERM);
        self.ending = Some(Ending { reason, kill_at, survivors_were_named: false });
        kill_at
    }

    /// Kills whatever is left once the time has come, again and again: what is killed may have
    /// started something just before. Returns when to look again.
    fn kill_when_due(&mut self, now: Moment) -> Moment {
        let Some(ending) = &mut self.ending else { return now };
        if now < ending.kill_at {
            return ending.kill_at;
        }
        self.child.kill_all();
        if now < ending.kill_at + REAPING {
            return now + LOOK;
        }
        if !std::mem::replace(&mut ending.survivors_were_named, true) {
            name(&self.child.others());
        }
        now + LATER_LOOK
    }

    /// Ends what the command has started and left, once the lease is lost: it works under the lock
    /// as well. Without a loss it goes on, as it does under a shell.
    fn end_others(&mut self, events: &mut Events) {
        while let Some(ending) = &self.ending
            && !ending.survivors_were_named
            && self.child.has_left_others()
        {
            let now = Moment::now();
            // Those that the tool has not adopted end without a signal to it.
            let until = self.kill_when_due(now).min(now + LOOK_FOR_OTHERS);
            _ = events.next(Some(until));
            self.child.look();
        }
    }

    /// Hands a signal on to the command's group.
    fn hand_on(&mut self, signal: i32) {
        let now = Moment::now();
        if signal == SIGTERM {
            if self.ending.is_none()
                && let Some(outer) = Deadline::of_outer()
            {
                // The outer tool has sent SIGTERM to all processes below it, this command included.
                let kill_at = Schedule::before_outer(outer, now);
                self.deadline.tell(kill_at);
                self.ending = Some(Ending { reason: None, kill_at, survivors_were_named: false });
                return;
            }
            // Whoever signals a whole control group signals this tool more than once where tools
            // are nested, and the command should not be told as often.
            let last = self.term_handed_on.replace(now);
            if last.is_some_and(|last| now.since(last) < SAME_TERM) {
                return;
            }
        }
        self.child.signal(signal);
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

/// Says which processes cannot be ended.
fn name(survivors: &[Process]) {
    if survivors.is_empty() {
        return;
    }
    let name = |process: &Process| format!("{} ({})", process.pid, process.name);
    let names: Vec<_> = survivors.iter().take(MAX_NAMES).map(name).collect();
    let more = if survivors.len() > MAX_NAMES { ", …" } else { "" };
    let names = names.join(", ");
    say(&format!("cannot be ended and may work on without the lock: {names}{more}"));
}

/// How often the tool kills what is left, once the time has come.
const LOOK: Duration = Duration::from_millis(10);

/// How often it looks whether everything below it has ended, before the time has come.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(50);

/// How often it tries again to kill a command that could not be killed.
const LATER_LOOK: Duration = Duration::from_secs(1);

/// How long the killed are waited for: their own parent may never reap them.
const REAPING: Duration = Duration::from_millis(500);

/// A second SIGTERM within this time is the same one, on another way.
const SAME_TERM: Duration = Duration::from_millis(500);

/// More names would hide the message.
const MAX_NAMES: usize = 8;
