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
    run::{RESERVE, Target},
};

/// `tenure run`.
#[derive(Debug)]
pub(crate) struct Run {
    /// The address of the server.
    pub(crate) server: String,
    /// The key's lifetime.
    pub(crate) ttl: Duration,
    /// The longest TTL that anybody uses, if it was said.
    pub(crate) longest_ttl: Option<Duration>,
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
    pub(crate) report: Option<Target>,
    /// Say on standard error what is going on.
    pub(crate) verbose: bool,
    /// The lock's key.
    pub(crate) key: OsString,
    /// The program to run.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
}

impl Run {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let mut words =
            matches.get_many::<OsString>("words").unwrap_or_default().cloned().peekable();
        let key = words.next();
        words.next_if(|word| word == "--");
        let (Some(key), Some(program)) = (key, words.next()) else {
            return Err(Failure::new(exit::USAGE, "a KEY and a CMD are needed")
                .hint("such as: tenure run --local nightly -- ./report.sh"));
        };
        let ttl = matches.get_one("ttl").copied().unwrap_or(DEFAULT_TTL);
        let (wait, busy) = options::wait(matches);
        Ok(Self {
            server: options::server(matches)?,
            ttl,
            longest_ttl: matches.get_one("longest-ttl").copied(),
            wait,
            label: matches.get_one("label").cloned(),
            max_hold: matches.get_one("max-hold").copied(),
            kill_after: grace(ttl, matches.get_one("kill-after").copied())?,
            busy,
            report: matches
                .get_one::<OsString>("report")
                .map(|text| Target::read(OsStr::new(text))),
            verbose: matches.get_flag("verbose"),
            key,
            program,
            args: words.collect(),
        })
    }
}

/// How long the command has to end: what was asked for, if that leaves a renewal the time to fail.
fn grace(ttl: Duration, wanted: Option<Duration>) -> Result<Duration, Failure> {
    let Some(wanted) = wanted else { return Ok((ttl / 4).min(LONGEST_GRACE)) };
    // SIGTERM is sent so long before the end of the validity. If that were before the first
    // renewal, at a third of the validity, then every command would be ended.
    let validity = ttl.saturating_sub(ttl / 100 + Duration::from_millis(2));
    let longest = (validity * 2 / 3).saturating_sub(RESERVE);
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

/// A command that needs longer to end should say so.
const LONGEST_GRACE: Duration = Duration::from_secs(10);

pub(super) fn command() -> Command {
    Command::new("run")
        .override_usage("tenure run [OPTIONS] KEY [--] CMD [ARGS]...")
        .about(
            "Waits for the lock, for ever unless told otherwise, runs a command while holding it, \
             and releases it.",
        )
        .after_help(format!("{NOTES}\n{}\n{}", super::DURATIONS, exit::table()))
        .disable_help_flag(true)
        .args(options::servers())
        .arg(Arg::new("ttl").long("ttl").value_name("D").allow_negative_numbers(true)
            .value_parser(duration::parse_ttl)
            .help(
                "Has others wait this long after a crash of this host. The lock is renewed every \
                 third of it while CMD runs, however long that is. The default is 30 s, the least \
                 500 ms.",
            ))
        .arg(options::longest_ttl())
        .args(options::waiting())
        .arg(options::label())
        .args(limits())
        .arg(Arg::new("report").long("report").value_name("FILE|FD")
            .value_parser(value_parser!(OsString))
            .help(
                "Writes what became of it to this file, or to this descriptor if it is a number, \
                 as one line of JSON: outcome, exit_code, waited_ms, held_ms, fence, child_status, \
                 child_signal, lost, taken_by.",
            ))
        .arg(options::verbose())
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
                    "Names the lock, by the server's key exactly as given, and then the command, \
                     which is run without a shell.",
                ),
        )
}

fn limits() -> [Arg; 2] {
    [
        Arg::new("max-hold").long("max-hold").value_name("D").value_parser(duration::parse).help(
            "Ends CMD, as if the lock were lost, when it has held the lock this long. The default \
             is no limit.",
        ),
        Arg::new("kill-after")
            .long("kill-after")
            .value_name("D")
            .value_parser(duration::parse)
            .help(
                "Gives CMD this long between SIGTERM and SIGKILL once the lock is lost. The \
                 default is a quarter of the TTL, but at most 10 s; the most is two thirds of \
                 the TTL less a little over 100 ms.",
            ),
    ]
}

/// What a reader of the help should know beyond the options.
const NOTES: &str = "\
Options end at KEY: everything after it belongs to CMD.

CMD gets the environment as it is and, besides, TENURE_KEY, TENURE_TOKEN (which can extend
and release the lock: a secret), TENURE_FENCE (a number that grows with every acquisition:
show it to what the lock protects) and TENURE_TTL_MS.

CMD runs in a process group of its own, which owns the terminal if tenure did. SIGINT,
SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are handed on to the whole group. When Ctrl-C
has ended CMD, tenure's own group is interrupted, too, as it would be without tenure. When CMD
itself has ended, the lock is released; what CMD left in the background goes on without it.
When the lock is lost, the whole group gets SIGTERM at once and SIGKILL before the lock's
TTL can end. When tenure is killed by SIGKILL, so is CMD, but not what CMD has started.
While tenure is stopped, by Ctrl-Z too, nothing is renewed: a stop that outlasts the TTL
loses the lock, and CMD is ended as soon as tenure goes on.

A tenure run of the same KEY inside CMD waits for the outer one, which waits for CMD: use
-n or --wait there.
";
