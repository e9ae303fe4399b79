//! `--report`: what became of a run, for programs.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc::RecvTimeoutError,
    time::{Duration, Instant},
};

use rustix::fs::OFlags;
use tenure::{Holder, LockGuard, LossReason};

use super::supervise::Ended;
use crate::{
    child::CommandEnd,
    exit,
    failure::{Failure, quoted},
    json::Object,
    output,
    system::inherited,
};

/// Where the report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    /// A file, created or overwritten.
    File(PathBuf),
    /// A descriptor that the tool inherited.
    Descriptor(i32),
}

impl ReportTarget {
    /// Reads the option: a number is a descriptor, anything else a file.
    pub(crate) fn read(text: &OsStr) -> Self {
        match text.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => Self::Descriptor(number),
            None => Self::File(OsString::from(text).into()),
        }
    }

    /// Opens it before anything else is done, so a report that cannot be written fails now.
    ///
    /// # Errors
    ///
    /// A [`Failure`] that names it.
    pub(super) fn open(&self) -> Result<ReportFile, Failure> {
        let (file, name) = match self {
            Self::File(path) => (writable(path), quoted(path.as_os_str().as_encoded_bytes())),
            Self::Descriptor(number) => (inherited(*number), number.to_string()),
        };
        let bad = |error: io::Error| {
            let what = format!("cannot write a report to {name}: {error}");
            Failure::new(exit::of_system(&error, exit::USAGE), what)
                .hint("--report takes a file, or an open descriptor")
        };
        let is_own = matches!(self, Self::File(_));
        file.map(|file| ReportFile { file, is_own }).map_err(bad)
    }
}

/// Opens a file for a report and leaves what is in it until there is one.
fn writable(path: &Path) -> io::Result<File> {
    // A pipe that nobody reads would keep the opening waiting.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.write(true).create(true).truncate(false).custom_flags(flags.bits().cast_signed());
    options.open(path)
}

/// A place for one line.
#[derive(Debug)]
pub(super) struct ReportFile {
    file: File,
    /// The tool opened it by its name, so what was there before is replaced.
    is_own: bool,
}

impl ReportFile {
    /// Writes it, and gives up when nobody reads.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for a report that cannot be written.
    pub(super) fn write(self, record: &RunRecord, code: u8) -> Result<(), Failure> {
        let line = record.line(code);
        let written = output::start(move || self.replace(&line), None);
        let written = match written.recv_timeout(WRITING) {
            Ok(written) => written,
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(output::no_thread()),
        };
        written.map_err(|error| {
            let code = exit::of_system(&error, exit::NOT_WRITTEN);
            Failure::new(code, format!("cannot write the report: {error}"))
        })
    }

    fn replace(mut self, line: &str) -> io::Result<()> {
        // What is no regular file has no length.
        if self.is_own && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(line.as_bytes())
    }
}

/// What is known of a run so far.
#[derive(Debug)]
pub(super) struct RunRecord {
    key: Vec<u8>,
    outcome: &'static str,
    reason: Option<String>,
    holder: Option<Holder>,
    waited: Duration,
    acquired_at: Option<Instant>,
    held: Option<Duration>,
    fence: Option<u64>,
    end: Option<CommandEnd>,
    lost: Option<LossReason>,
    /// Ctrl-C has ended the command, and is to end whatever the tool is part of.
    pub(super) interrupts_all: bool,
}

impl RunRecord {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            key: key.to_owned(),
            outcome: "usage",
            reason: None,
            holder: None,
            waited: Duration::ZERO,
            acquired_at: None,
            held: None,
            fence: None,
            end: None,
            lost: None,
            interrupts_all: false,
        }
    }

    pub(super) fn waited(&mut self, waited: Duration) {
        self.waited = waited;
    }

    /// Notes what is said about it.
    pub(super) fn says(&mut self, message: Option<&str>) {
        self.reason = message.map(ToOwned::to_owned).or_else(|| self.reason.take());
    }

    /// Another held it, the state was unknown, or a signal came: in any case not acquired.
    pub(super) fn not_acquired(&mut self, failure: Failure, busy: u8) -> Failure {
        self.holder.clone_from(&failure.holder);
        self.outcome = match (failure.code, &failure.message) {
            (_, None) => "interrupted",
            (exit::USAGE, _) if busy != exit::USAGE => "usage",
            (exit::UNKNOWN, _) if busy != exit::UNKNOWN => "unreachable",
            _ => "busy",
        };
        failure
    }

    pub(super) fn acquired(&mut self, guard: &LockGuard) {
        self.acquired_at = Some(Instant::now());
        self.fence = Some(guard.fencing_token().get());
        self.outcome = "not_started";
    }

    pub(super) fn ended(&mut self, ended: &Ended) {
        self.outcome = "ended";
        self.end = Some(ended.end);
        self.held = Some(self.held());
        if let Some(reason) = &ended.lost {
            self.lost(reason);
        }
    }

    pub(super) fn lost(&mut self, reason: &LossReason) {
        self.outcome = "lost";
        self.lost = Some(reason.clone());
    }

    /// How long the lock was held while the command ran, up to now if it still does.
    pub(super) fn held(&self) -> Duration {
        let so_far = || self.acquired_at.map(|at| at.elapsed());
        self.held.or_else(so_far).unwrap_or_default()
    }

    fn line(&self, code: u8) -> String {
        let (status, signal) = match self.end {
            Some(CommandEnd::Status(status)) => (Some(u64::from(status)), None),
            Some(CommandEnd::Signal(signal)) => (None, Some(u64::from(signal.unsigned_abs()))),
            None => (None, None),
        };
        let taken_by = match &self.lost {
            Some(LossReason::Taken { holder }) => Some(holder),
            _ => None,
        };
        Object::new()
            .key(&self.key)
            .text("outcome", Some(self.outcome))
            .text("reason", self.reason.as_deref())
            .number("exit_code", Some(code))
            .number("waited_ms", Some(milliseconds(self.waited)))
            .number("held_ms", self.acquired_at.map(|_| milliseconds(self.held())))
            .number("fence", self.fence)
            .number("child_status", status)
            .number("child_signal", signal)
            .holder("holder", self.holder.as_ref().or(taken_by))
            .text("lost", self.lost.as_ref().map(word))
            .holder("taken_by", taken_by)
            .line()
    }
}

/// A loss in one word.
fn word(reason: &LossReason) -> &'static str {
    match reason {
        LossReason::Expired => "expired",
        LossReason::Paused { .. } => "paused",
        LossReason::Gone => "gone",
        LossReason::Taken { .. } => "taken",
        LossReason::MaxHold => "max_hold",
        _ => "stopped",
    }
}

/// How long a report waits for its reader: the exit code waits with it.
const WRITING: Duration = Duration::from_secs(2);

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
