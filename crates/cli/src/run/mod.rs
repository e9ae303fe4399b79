//! `tenure run`: a command under a lock.

mod report;
mod schedule;
mod supervise;

use std::{ffi::OsStr, fmt::Write as _, time::Instant};

use signal_hook::consts::{SIGCONT, SIGINT, SIGTSTP};
use tenure::{LockGuard, Loss, LossReason, ReleaseError, RenewalFailure};

pub(crate) use self::{report::ReportTarget, schedule::RESERVE};
use self::{
    report::RunRecord,
    supervise::{Ended, Supervisor},
};
use crate::{
    acquire::{self, WaitReporting, seconds},
    args::RunArgs,
    child::{Child, CommandEnd, Terminal},
    client::connect,
    events::Events,
    exit,
    failure::{self, Failure},
    messages::{flush, say},
    system::{Deadline, interrupt_this_group},
};

/// Waits for the lock, runs the command, releases the lock; returns the command's exit code.
///
/// # Errors
///
/// A [`Failure`] when the tool has to say something else than the command.
pub(crate) fn run(wanted: &RunArgs) -> Result<u8, Failure> {
    let report = wanted.report.as_ref().map(ReportTarget::open).transpose()?;
    let mut record = RunRecord::new(wanted.key.as_encoded_bytes());
    let mut result = recorded(wanted, &mut record);
    let code = result.as_ref().map_or_else(|failure| failure.code, |code| *code);
    record.says(result.as_ref().err().and_then(|failure| failure.message.as_deref()));
    if let Some(report) = report
        && let Err(failure) = report.write(&record, code)
    {
        if code == 0 {
            result = Err(failure);
        } else {
            // What else went wrong must not be hidden by this.
            failure.say();
        }
    }
    if record.interrupts_all {
        flush();
        interrupt_this_group();
    }
    result
}

fn recorded(wanted: &RunArgs, record: &mut RunRecord) -> Result<u8, Failure> {
    let began = Instant::now();
    let mut events = Events::watch().map_err(failure::cannot_watch)?;
    let key = failure::quoted(wanted.key.as_encoded_bytes());
    let client = connect(&wanted.server)?;
    let mut lock = client.lock(wanted.key.as_encoded_bytes()).ttl(wanted.ttl).wait(wanted.wait);
    if let Some(label) = &wanted.label {
        lock = lock.label(label);
    }
    if let Some(longest) = wanted.max_ttl {
        lock = lock.max_ttl(longest);
    }
    if let Some(longest) = wanted.node_limit {
        lock = lock.node_limit(longest);
    }
    if let Some(longest) = wanted.max_hold {
        lock = lock.max_hold(longest);
    }
    let nested = acquire::is_nested(&wanted.key);
    let reporting = WaitReporting { key: &key, busy: wanted.busy, verbose: wanted.verbose, nested };
    let acquired = acquire::acquire(&lock, &mut events, reporting);
    record.waited(began.elapsed());
    let guard = acquired.map_err(|failure| record.not_acquired(failure, wanted.busy))?;
    record.acquired(&guard);
    if wanted.verbose {
        let number = guard.fencing_token();
        let waited = seconds(began.elapsed());
        say(&format!("acquired the lock {key} after {waited}, number {number}"));
    }
    for signal in [SIGTSTP, SIGCONT] {
        events.watch_also(signal).map_err(failure::cannot_watch)?;
    }
    let terminal = Terminal::of_this_process();
    let deadline = Deadline::new();
    let started = start(wanted, &guard, terminal.as_ref(), &deadline);
    let ended = match started {
        Ok(child) => {
            let terminal = terminal.as_ref();
            let supervisor = Supervisor::new(child, &guard, terminal, &deadline, wanted.kill_after);
            supervisor.until_ended(&mut events)
        }
        Err(failure) => {
            drop(terminal);
            release(guard, &mut events, &key, record)?;
            return Err(failure);
        }
    };
    let by = |signal| ended.end == CommandEnd::Signal(signal);
    let by_signal = matches!(ended.end, CommandEnd::Signal(_));
    let had_terminal =
        terminal.as_ref().is_some_and(|terminal| terminal.take_back_from_ended(by_signal));
    // Ctrl-C reached the command alone. Without tenure it would have reached the whole group: the
    // script that the tool is part of, and the loop of a shell, are meant to end as well.
    record.interrupts_all = had_terminal && by(SIGINT);
    record.ended(&ended);
    let Ended { end, lost: reason } = ended;
    if let Some(reason) = reason {
        // The release of a lost lock is nothing to wait for; the client's end sees to it.
        return Err(lost(&key, &reason, guard.renewal_failure().as_ref()));
    }
    let is_released = release(guard, &mut events, &key, record)?;
    if is_released {
        // The end of the process ends the engine as well. What a minority of the servers has yet to
        // be sent is written on the way out.
        std::mem::forget((lock, client));
    }
    if is_released && wanted.verbose {
        say(&format!("released the lock {key} after {}", seconds(record.held())));
    }
    Ok(end.code())
}

fn start(
    wanted: &RunArgs,
    guard: &LockGuard,
    terminal: Option<&Terminal>,
    deadline: &Deadline,
) -> Result<Child, Failure> {
    let number = guard.fencing_token().to_string();
    let deadlines = deadline.variable();
    let ttl_ms = wanted.ttl.as_millis().to_string();
    let variables = [
        ("TENURE_KEY", wanted.key.as_os_str()),
        ("TENURE_TOKEN", OsStr::new(guard.token().as_str())),
        ("TENURE_FENCE", OsStr::new(&number)),
        ("TENURE_TTL_MS", OsStr::new(&ttl_ms)),
        (Deadline::VARIABLE, deadlines.as_os_str()),
    ];
    Child::start(&wanted.program, &wanted.args, &variables, terminal)
}

fn lost(key: &str, reason: &LossReason, failure: Option<&RenewalFailure>) -> Failure {
    let mut what = format!("lost the lock {key} while the command ran: {reason}");
    let failure = failure.filter(|_| *reason == LossReason::Expired);
    if let Some(failure) = failure {
        _ = write!(what, "; {failure}");
    }
    let refusal = failure.filter(|failure| failure.is_refusal());
    let failure = Failure::new(exit::LOST, what);
    match reason {
        _ if refusal.is_some() => {
            failure.hint("the servers must permit this for as long as a lock is held")
        }
        LossReason::Expired => failure.hint("a longer --ttl outlasts longer outages"),
        LossReason::Paused { .. } => failure.hint("a longer --ttl outlasts longer pauses"),
        LossReason::Released => {
            failure.hint("release it with TENURE_TOKEN only after the command's end")
        }
        LossReason::MaxHold => failure.hint("--max-hold is the bound, if the work needs longer"),
        _ => failure.hint("another may have worked at the same time: see TENURE_FENCE in --help"),
    }
}

/// Releases the lock of a command that has ended; says whether that is confirmed.
///
/// # Errors
///
/// A [`Failure`] when the lock turns out to have been lost before the command ended.
fn release(
    guard: LockGuard,
    events: &mut Events,
    key: &str,
    record: &mut RunRecord,
) -> Result<bool, Failure> {
    match events.block_on(guard.release()) {
        Ok(()) => Ok(true),
        Err(ReleaseError::NotHeld(Loss { reason, failure, .. })) => {
            record.lost(&reason);
            Err(lost(key, &reason, failure.as_deref()))
        }
        Err(ReleaseError::AlreadyReleased { .. }) => {
            record.lost(&LossReason::Released);
            Err(lost(key, &LossReason::Released, None))
        }
        // The command was done in time, so its code stands; the key ends with its TTL at worst.
        Err(error) => {
            let what = format!("the release of {key} is not confirmed, it ends with its TTL");
            let indeterminate = failure::indeterminate(&what, &error);
            record.says(indeterminate.message.as_deref());
            if let Some(message) = indeterminate.message {
                say(&message);
            }
            Ok(false)
        }
    }
}
