//! A command under a lease: what happens to the one, and what that means for the other.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use signal_hook::consts::{SIGCHLD, SIGCONT, SIGTERM, SIGTTIN, SIGTTOU};
use tenure::{LockGuard, LossReason};

use super::schedule::{NextStep, Schedule};
use crate::{
    child::{Child, ChildState, CommandEnd, Survivors, Terminal},
    events::{Event, Events},
    messages::say,
    system::{Deadline, Moment, ProcessInfo, stop_this_group},
};

/// A command that runs under a lease.
pub(super) struct Supervisor<'a> {
    child: Child,
    guard: &'a LockGuard,
    terminal: Option<&'a Terminal>,
    /// Where inner tools read when they are killed.
    deadline: &'a Deadline,
    schedule: Schedule,
    /// Once the command has got SIGTERM.
    ending: Option<Ending>,
    /// When SIGTERM is handed on, or was last.
    term: Option<Moment>,
    /// SIGTERM has come and is yet to be handed on.
    term_is_due: bool,
}

/// A command that got SIGTERM, whether it ends or not.
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
    pub(super) end: CommandEnd,
    /// Why the lease was lost, if it was.
    pub(super) lost: Option<LossReason>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        child: Child,
        guard: &'a LockGuard,
        terminal: Option<&'a Terminal>,
        deadline: &'a Deadline,
        grace: Duration,
    ) -> Self {
        let schedule = Schedule::new(grace, Moment::now());
        let (ending, term, term_is_due) = (None, None, false);
        Self { child, guard, terminal, deadline, schedule, ending, term, term_is_due }
    }

    /// Waits for the command's end, and brings it about when the lease is lost.
    pub(super) fn until_ended(mut self, events: &mut Events) -> Ended {
        let mut lost = pin!(self.guard.lost());
        let end = loop {
            match self.child.try_wait() {
                ChildState::Ended(end) => break end,
                ChildState::Stopped(signal) => {
                    self.stopped(signal);
                    continue;
                }
                ChildState::Running => {}
            }
            let until = self.look(events, lost.as_mut());
            let until = self.hand_on_when_due().map_or(until, |due| due.min(until));
            match events.next(Some(until)) {
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
    ) -> Moment {
        let now = Moment::now();
        if self.ending.is_some() {
            return self.kill_when_due(now);
        }
        let left = self.guard.valid_for();
        // After a stop of this process its own look may come before the engine's.
        let is_lost = || self.guard.ensure_held().err().map(|loss| loss.reason);
        if let Some(reason) = events.poll(lost).or_else(is_lost) {
            let kill_at = self.schedule.after_loss(&reason, now);
            return self.end(Some(reason), kill_at);
        }
        match self.schedule.step(now, left.unwrap_or_default()) {
            NextStep::CheckAt(at) => at,
            NextStep::EndBy(at) => self.end(Some(LossReason::Expired), at),
        }
    }

    /// Sends SIGTERM to the command and its descendants, and the deadline to inner tools.
    fn end(&mut self, reason: Option<LossReason>, kill_at: Moment) -> Moment {
        // Before the signal, which makes them look.
        self.deadline.publish(kill_at);
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
        let survivors = match self.child.kill_all() {
            Survivors::Refusing(survivors) => survivors,
            Survivors::Dying(_) if now < ending.kill_at + DYING => return now + KILL_INTERVAL,
            Survivors::Dying(survivors) => survivors,
        };
        if !survivors.is_empty() && !std::mem::replace(&mut ending.survivors_were_named, true) {
            name(&survivors);
        }
        now + RETRY_INTERVAL
    }

    /// Ends what the command has started and left, once the lease is lost: it works under the lock
    /// as well. Without a loss it goes on, as it does under a shell.
    fn end_others(&mut self, events: &mut Events) {
        while let Some(ending) = &self.ending
            && !ending.survivors_were_named
            && self.child.has_left_others()
        {
            let now = Moment::now();
            if now >= ending.kill_at + DYING {
                // Those that nobody lists are dead, and their own parent may never reap them.
                let survivors = self.child.others();
                if !survivors.is_empty() {
                    name(&survivors);
                }
                return;
            }
            // Those that the tool has not adopted end without a signal to it.
            let until = self.kill_when_due(now).min(now + OTHERS_INTERVAL);
            _ = events.next(Some(until));
            self.child.try_wait();
        }
    }

    /// Hands a signal on to the command's group.
    fn hand_on(&mut self, signal: i32) {
        let now = Moment::now();
        if signal == SIGTERM {
            if self.ending.is_none()
                && let Some(kill_at) = Schedule::before_outer(&Deadline::of_outer(), now)
            {
                // The outer tool has sent SIGTERM to all processes below it, this command included.
                self.deadline.publish(kill_at);
                self.ending = Some(Ending { reason: None, kill_at, survivors_were_named: false });
                return;
            }
            // A signal to a whole control group reaches nested tools too, and each forwards it. The
            // command gets it once.
            if self.term.is_some_and(|term| now < term + SAME_TERM) {
                return;
            }
            let wait = if is_main_process_of_service() { SAME_TERM } else { Duration::ZERO };
            (self.term, self.term_is_due) = (Some(now + wait), true);
            return;
        }
        self.child.signal(signal);
    }

    /// Hands SIGTERM on once its time has come; returns when that is, if it is yet to come.
    fn hand_on_when_due(&mut self) -> Option<Moment> {
        let term = self.term.filter(|_| self.term_is_due)?;
        if Moment::now() < term {
            return Some(term);
        }
        self.term_is_due = false;
        // After a loss all have got it.
        if self.ending.is_none() {
            self.child.signal(SIGTERM);
        }
        None
    }

    /// The command was stopped: by Ctrl-Z, or because it wants a terminal that it does not own.
    ///
    /// Under a shell the whole job stops, the tool too, so the lease is not renewed meanwhile.
    fn stopped(&mut self, signal: i32) {
        // Without a terminal the process that stopped it will also continue it.
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
        // to stop the tool: it would be stopped again at once, without end.
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

/// Whether the tool is what a unit of systemd starts. By default systemd signals all processes of a
/// unit, the command among them, so the command gets a moment to end before the next signal.
fn is_main_process_of_service() -> bool {
    let main = std::env::var("SYSTEMD_EXEC_PID").ok().and_then(|pid| pid.parse().ok());
    main == Some(std::process::id())
}

/// Says which processes cannot be ended.
fn name(survivors: &[ProcessInfo]) {
    let name = |process: &ProcessInfo| format!("{} ({})", process.pid, process.name);
    let names: Vec<_> = survivors.iter().take(MAX_NAMES).map(name).collect();
    let more = if survivors.len() > MAX_NAMES { ", …" } else { "" };
    let names = names.join(", ");
    say(&format!("cannot be ended and may work on without the lock: {names}{more}"));
}

/// How often the tool kills what is left, once the time has come.
const KILL_INTERVAL: Duration = Duration::from_millis(10);

/// How often it checks whether everything below it has ended, before the time has come.
const OTHERS_INTERVAL: Duration = Duration::from_millis(50);

/// How often it tries again to kill a command that could not be killed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long the killed are waited for: on a busy machine they die late.
const DYING: Duration = Duration::from_secs(5);

/// A second SIGTERM within this time is the same one, by another way.
const SAME_TERM: Duration = Duration::from_millis(500);

/// More names would hide the message.
const MAX_NAMES: usize = 8;
