//! Ops that are checked against the server's marker, and what becomes of the marker.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tenure_core::{MARKER_KEY, Marker, MarkerCause, MarkerCheck, MarkerMode, NodeTime};

use super::Step;
use crate::node::{Command, START_US};

/// What becomes of the marker, or of the identity that it names.
#[derive(Clone, Debug)]
pub(crate) enum MarkerStep {
    /// The server gets another `master_replid`, as by a promotion.
    Renamed,
    /// Somebody writes a marker.
    Planted(Planted),
    /// Somebody writes a text that is none.
    Text(&'static str),
    /// A list stands there.
    OtherType,
    /// Somebody deletes it.
    Deleted,
}

/// A marker to be written.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    is_of_this_server: bool,
    is_of_this_run: bool,
    database: u64,
    cause: MarkerCause,
    yield_ms: u64,
    longest_ms: u64,
    floor_ms: u64,
    /// So long before now, by the server's clock, and before [`START_MS`], by the clients'.
    since: (i64, i64),
    /// What makes it none.
    flaw: Option<Flaw>,
}

/// What makes a text that looks like a marker none.
#[derive(Clone, Copy, Debug)]
enum Flaw {
    /// Another word behind it.
    Tail,
    /// Its longest span has 17 digits.
    Digits,
    /// It is closed for another cause.
    Cause,
}

impl Planted {
    /// The text on a server of this identity.
    pub(crate) fn text(&self, at: NodeTime, replid: &str, run_id: &str) -> String {
        let before = |now: u64, ms: i64| now.saturating_add_signed(-ms);
        let of_other = "0123456789abcdef0123456789abcdef01234567";
        let id = |is_own: bool, own: &str| if is_own { own } else { of_other }.to_owned();
        let marker = Marker {
            database: self.database,
            replid: id(self.is_of_this_server, replid),
            yield_ms: self.yield_ms,
            longest_ms: self.longest_ms,
            floor_ms: self.floor_ms,
            cause: self.cause,
            run_id: id(self.is_of_this_run, run_id),
            since_ms: before(at.wall_us / 1_000, self.since.0),
            client_since_ms: before(START_MS, self.since.1),
        };
        let text = marker.to_string();
        let mut words: Vec<&str> = text.split(' ').collect();
        let digits = format!("{:017}", self.longest_ms);
        match self.flaw {
            None => {}
            Some(Flaw::Tail) => words.push("1"),
            Some(Flaw::Digits) => words[3] = &digits,
            Some(Flaw::Cause) => words[5] = "old",
        }
        words.join(" ")
    }
}

impl MarkerStep {
    /// The commands that do it; a text is the model's to find.
    pub(crate) fn commands(&self, text: Option<&str>) -> Vec<Command> {
        let command = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect();
        match self {
            Self::Renamed => vec![command(&[b"DEBUG", b"CHANGE-REPL-ID"])],
            Self::Planted(_) | Self::Text(_) => {
                vec![command(&[b"SET", MARKER_KEY, text.unwrap_or_default().as_bytes()])]
            }
            Self::OtherType => {
                vec![command(&[b"DEL", MARKER_KEY]), command(&[b"RPUSH", MARKER_KEY, b"x"])]
            }
            Self::Deleted => vec![command(&[b"DEL", MARKER_KEY])],
        }
    }
}

pub(super) fn check() -> impl Strategy<Value = MarkerCheck> {
    let client_ms = prop_oneof![
        2 => Just(START_MS),
        3 => select(vec![START_MS + SPAN_MS - 1, START_MS + SPAN_MS, START_MS + SPAN_MS + 1]),
        1 => select(vec![0, START_MS - 1, 2 * START_MS]),
    ];
    let span_ms = prop_oneof![3 => Just(SPAN_MS), 1 => select(vec![12, SPAN_MS + 1, 3_600_000])];
    let mode = prop_oneof![
        6 => Just(MarkerMode::Check),
        1 => Just(MarkerMode::Peek),
        1 => Just(MarkerMode::Open)
    ];
    let database = prop_oneof![9 => Just(0), 1 => Just(3)];
    (span_ms, client_ms, database, any::<bool>(), mode).prop_map(
        |(span_ms, client_ms, database, is_durable, mode)| MarkerCheck {
            span_ms,
            client_ms,
            database,
            is_durable,
            mode,
        },
    )
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let step = prop_oneof![
        6 => planted().prop_map(MarkerStep::Planted),
        1 => Just(MarkerStep::Renamed),
        1 => select(vec!["", "x", "0", "0 a 1 2 3 new b 4"]).prop_map(MarkerStep::Text),
        1 => Just(MarkerStep::OtherType),
        1 => Just(MarkerStep::Deleted),
    ];
    step.prop_map(Step::Marker)
}

fn planted() -> impl Strategy<Value = Planted> {
    let cause = select(vec![MarkerCause::New, MarkerCause::Changed]);
    let open = prop_oneof![
        3 => Just(0),
        2 => select(vec![12, SPAN_MS - 1, SPAN_MS]),
        1 => select(vec![(1 << 53) - 1, 1 << 53, 10_000_000_000_000_000]),
    ];
    let longest = select(vec![0, SPAN_MS - 1, SPAN_MS, 3_600_000]);
    let floor = prop_oneof![3 => Just(0), 1 => select(vec![SPAN_MS + 1, 3_600_000])];
    let ago = || {
        prop_oneof![
            2 => select(vec![SPAN_MS - 1, SPAN_MS, SPAN_MS + 1]),
            1 => select(vec![0, 1, 12, 3_600_000]),
        ]
        .prop_map(i64::try_from)
        .prop_map(Result::unwrap)
    };
    let since = prop_oneof![5 => (ago(), ago()), 1 => Just((-1_000, -1_000))];
    let own = || prop_oneof![4 => Just(true), 1 => Just(false)];
    let flaw = select(vec![Flaw::Tail, Flaw::Digits, Flaw::Cause]);
    let flaw = prop_oneof![4 => Just(None), 1 => flaw.prop_map(Some)];
    let database = prop_oneof![9 => Just(0), 1 => Just(3)];
    let words = (database, cause, open, longest, floor);
    (own(), any::<bool>(), words, since, flaw).prop_map(|(server, run, words, since, flaw)| {
        let (database, cause, yield_ms, longest_ms, floor_ms) = words;
        Planted {
            is_of_this_server: server,
            is_of_this_run: run,
            database,
            cause,
            yield_ms,
            longest_ms,
            floor_ms,
            since,
            flaw,
        }
    })
}

/// The wall clock of clients, mostly.
const START_MS: u64 = START_US / 1_000;

/// The span of most checks: that of locks of 30 s.
const SPAN_MS: u64 = 30_302;
