//! The command line of `tenure run`.

use std::{
    ffi::{OsStr, OsString},
    time::Duration,
};

use clap::{Arg, ArgMatches, Command, value_parser};
use tenure::Wait;

use super::options;
use crate::{
    duration, exit,
    failure::Failure,
    run::{RESERVE, ReportTarget},
};

/// `tenure run`.
#[derive(Debug)]
pub(crate) struct RunArgs {
    /// The address of the server.
    pub(crate) server: String,
    /// The key's lifetime.
    pub(crate) ttl: Duration,
    /// The longest TTL that anybody uses, if it was said.
    pub(crate) max_ttl: Option<Duration>,
    /// How long each server may take, if it was said.
    pub(crate) node_limit: Option<Duration>,
    /// How long to wait.
    pub(crate) wait: Wait,
    /// What others see as the holder; `host/pid` without.
    pub(crate) label: Option<String>,
    /// The longest that the lock is held.
    pub(crate) max_hold: Option<Duration>,
    /// How long the command has between SIGTERM and SIGKILL once the lease is lost.
    pub(crate) kill_after: Duration,
    /// The exit code when another holds the lock.
    pub(crate) busy: u8,
    /// Where to say in JSON what became of it.
    pub(crate) report: Option<ReportTarget>,
    /// Say on standard error what is going on.
    pub(crate) verbose: bool,
    /// The lock's key.
    pub(crate) key: OsString,
    /// The program to run.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
}

impl RunArgs {
    /// Reads what the parser has found in this line.
    pub(super) fn read(matches: &ArgMatches, line: &[OsString]) -> Result<Self, Failure> {
        let words = matches.get_many::<OsString>("words").unwrap_or_default();
        // Nothing behind the first word is an option, so the words are the end of the line.
        let before = line.len().checked_sub(words.len() + 1).and_then(|at| line.get(at));
        let mut words = words.cloned().peekable();
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let in_hex = options::hex_key(matches);
        if in_hex.is_none()
            && before.is_some_and(|word| word == "--")
            && !words.peek().is_some_and(is_option)
        {
            return Err(Failure::new(exit::USAGE, "there is no KEY before `--`").hint(EXAMPLE));
        }
        let key = in_hex.or_else(|| words.next());
        if let Some(word) = words.next_if(|word| is_option(word) && word != "--") {
            let word = super::misplaced(&word);
            let what = format!("the option {word} is after the KEY");
            return Err(Failure::new(exit::USAGE, what)
                .hint("options go before KEY; put `--` before a CMD that begins with a dash"));
        }
        words.next_if(|word| word == "--");
        let (Some(key), Some(program)) = (key, words.next()) else {
            return Err(Failure::new(exit::USAGE, "a KEY and a CMD are needed").hint(EXAMPLE));
        };
        check(&key, &program)?;
        let ttl = matches.get_one("ttl").copied().unwrap_or(DEFAULT_TTL);
        let (wait, busy) = options::wait(matches);
        Ok(Self {
            server: options::server(matches)?,
            ttl,
            max_ttl: matches.get_one("max-ttl").copied(),
            node_limit: matches.get_one("node-limit").copied(),
            wait,
            label: matches.get_one("label").cloned(),
            max_hold: matches.get_one("max-hold").copied(),
            kill_after: grace(ttl, matches.get_one("kill-after").copied())?,
            busy,
            report: matches
                .get_one::<OsString>("report")
                .map(|text| ReportTarget::read(OsStr::new(text))),
            verbose: matches.get_flag("verbose"),
            key,
            program,
            args: words.collect(),
        })
    }
}

/// Refuses what cannot be meant, or not be done.
fn check(key: &OsStr, program: &OsStr) -> Result<(), Failure> {
    let what = if DASHES.iter().any(|dash| program == *dash) {
        format!("the command is {}", super::misplaced(program))
    } else if key.to_str().is_some_and(|key| key.starts_with(['\u{2013}', '\u{2014}'])) {
        format!("the key {} begins with a long dash", super::misplaced(key))
    } else if key.as_encoded_bytes().contains(&0) {
        let what = "the key has a NUL byte, which TENURE_KEY cannot hold";
        return Err(Failure::new(exit::USAGE, what));
    } else {
        return Ok(());
    };
    Err(Failure::new(exit::USAGE, what)
        .hint("options begin with -- and CMD may follow a --")
        .hint(EXAMPLE))
}

/// What becomes of `--` in an editor, and on the way to the shift key.
const DASHES: [&str; 6] = ["-", "---", "\u{2013}", "\u{2014}", "\u{2212}", "\u{2212}\u{2212}"];

/// A whole command line.
const EXAMPLE: &str = "such as: tenure run --local nightly -- ./report.sh";

/// How long the command has to end: what was asked for, if that leaves a renewal the time to fail.
fn grace(ttl: Duration, wanted: Option<Duration>) -> Result<Duration, Failure> {
    let Some(wanted) = wanted else { return Ok((ttl / 4).min(MAX_GRACE)) };
    // SIGTERM is sent so long before the end of the validity. If that were before the answer to
    // the first renewal, which is sent at a third of the validity, every command would be ended.
    let validity = ttl.saturating_sub(ttl / 100 + Duration::from_millis(2));
    let answer = (validity / 6).max(MIN_ANSWER);
    let longest = (validity * 2 / 3).saturating_sub(answer + RESERVE);
    if wanted <= longest {
        return Ok(wanted);
    }
    let what = format!(
        "--kill-after is {wanted:?}; with a TTL of {ttl:?} it can be {} ms at most",
        longest.as_millis()
    );
    Err(Failure::new(exit::USAGE, what).hint("give a longer --ttl"))
}

/// Long enough for a restart of the server, and for a command that needs time to end.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// A renewal's answer takes no longer on a network that is not in trouble.
const MIN_ANSWER: Duration = Duration::from_millis(100);

/// A command that needs longer to end should say so.
const MAX_GRACE: Duration = Duration::from_secs(10);

pub(super) fn command() -> Command {
    Command::new("run")
        .override_usage("tenure run [OPTIONS] KEY [--] CMD [ARGS]...")
        .about(
            "Wait for the lock, run a command while holding it, and release it",
        )
        .after_help(format!("{NOTES}\n{}\n{}", super::DURATIONS, exit::table()))
        .disable_help_flag(true)
        .args(options::servers())
        .arg(Arg::new("ttl").long("ttl").value_name("D").allow_negative_numbers(true)
            .value_parser(duration::parse_ttl)
            .help(
                "TTL of the lock, the longest wait of others after a crash (default: 30s, minimum: \
                 500ms)",
            ))
        .arg(options::max_ttl())
        .arg(options::node_limit())
        .args(options::waiting())
        .arg(options::label())
        .args(limits())
        .arg(Arg::new("report").long("report").value_name("FILE|FD")
            .value_parser(value_parser!(OsString))
            .help(
                "Write the outcome as one line of JSON to this file, or to this descriptor",
            ))
        .arg(options::verbose())
        .arg(options::key_hex())
        .arg(options::help())
        .arg(
            // One argument, so that from its first word on nothing is an option any more.
            Arg::new("words")
                .value_names(["KEY", "CMD", "ARGS"])
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .value_parser(value_parser!(OsString))
                .help(
                    "Key of the lock on the server, exactly as given; then the command, which runs \
                     without a shell",
                ),
        )
}

fn limits() -> [Arg; 2] {
    [
        Arg::new("max-hold")
            .long("max-hold")
            .value_name("D")
            .value_parser(duration::parse)
            .help("End CMD after it has held the lock this long, like a loss (default: no limit)"),
        Arg::new("kill-after")
            .long("kill-after")
            .value_name("D")
            .value_parser(duration::parse)
            .help(
                "Time for CMD between SIGTERM and SIGKILL after a loss (default: a quarter of the \
                 TTL, at most 10s; maximum: just under half of the TTL)",
            ),
    ]
}

/// What a reader of the help should know beyond the options.
const NOTES: &str = "\
Options end at KEY: everything after it belongs to CMD.

TTL: the lock is renewed every third of its TTL while CMD runs, however long that is. While
tenure is stopped (Ctrl-Z, too) nothing is renewed: after a stop longer than the TTL the lock
is lost, and CMD is ended as soon as tenure continues.

Environment: CMD inherits it, with TENURE_KEY, TENURE_TOKEN (a secret: it can extend and
release the lock), TENURE_FENCE (a number that grows with each acquisition: pass it to the
resource that the lock protects), TENURE_TTL_MS, and TENURE_DEADLINES for a tenure run inside
CMD. Ignored and blocked signals are inherited, too.

Signals: CMD runs in its own process group, which owns the terminal if tenure did. SIGINT,
SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded to that group. If Ctrl-C ended
CMD, tenure's own group is interrupted as well, as it would be without tenure. When CMD ends,
the lock is released; processes that CMD left in the background keep running without it.

Loss: if the lock is lost, CMD and all its descendants get SIGTERM at once and SIGKILL before
the TTL can end, in whatever group or session they are. A tenure run among them releases its
own lock before that. On systems other than Linux only CMD's group is reached. Processes of
another user cannot be ended and are named: use sudo tenure run, not tenure run sudo. If
tenure is killed by SIGKILL, so is CMD, but not what CMD started.

Nesting: a tenure run of the same KEY inside CMD waits for the outer one, which waits for CMD:
use -n or --wait there.

Report: key (and key_hex if it is not text), outcome, reason (the message, if any), exit_code,
waited_ms, held_ms, fence, child_status, child_signal, holder (if another holds the lock),
lost, taken_by. A file keeps its content until the report is written.
";
