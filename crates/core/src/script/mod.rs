//! The same ops as scripts for a server: their text, their arguments, and their replies.
//!
//! One op is one script and one round trip. Every script is given a request number and begins its
//! reply with it. The property test of this crate drives the scripts and [`Row`](crate::Row) with
//! the same sequences and demands equal replies.

mod reply;

pub use reply::{Answer, Misread, read};

use crate::{
    Inspection, LockKey, Look, MARKER_KEY, MarkerCheck, MarkerMode, Op, Place, Token, Ttl,
    fence_ttl,
};

/// A script that servers run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Script {
    /// What it does, for logs.
    pub name: &'static str,
    /// The Lua source.
    pub text: &'static str,
    /// The SHA-1 of the source, in hex. A constant: hosts in FIPS mode refuse to compute one.
    pub sha1: &'static str,
}

/// The keys, the libraries, the body.
macro_rules! text {
    ($name:literal $(, $library:literal)*) => {
        concat!(
            "local K, F, Q = KEYS[1], KEYS[2], KEYS[3]\n",
            include_str!("lib.lua"),
            $(include_str!($library),)*
            include_str!(concat!($name, ".lua"))
        )
    };
}

macro_rules! script {
    ($name:literal, $sha1:literal $(, $library:literal)*) => {
        Script { name: $name, text: text!($name $(, $library)*), sha1: $sha1 }
    };
}

/// The same op, behind the check of the server's marker.
macro_rules! checked {
    ($name:literal, $sha1:literal $(, $library:literal)*) => {
        Script {
            name: concat!("checked ", $name),
            text: concat!(
                include_str!("marker.lua"),
                "\nlocal function op()\n",
                text!($name $(, $library)*),
                "end\n",
                include_str!("checked.lua")
            ),
            sha1: $sha1,
        }
    };
}

static ACQUIRE: Script =
    script!("acquire", "5ad79d2187bd4105deb9a9947b2fb54b1dc39d2b", "queue.lua", "rights.lua");
static RESUME: Script = script!("resume", "02d1681ed890ff73e881a80438a8c5f6eeb09a84", "rights.lua");
static STEAL: Script = script!("steal", "08fc17f3549130a512fcf0cc806d8706bbf417d1", "rights.lua");
static RELEASE: Script =
    script!("release", "73d3596b0147f15d79dafdad74cc04e39cc6a3b0", "queue.lua");
static FORCE_RELEASE: Script =
    script!("force_release", "47838e0c884e1246efe8db9d6f4ae2eb3b9e7918", "queue.lua");
static INSPECT: Script =
    script!("inspect", "19c86b18f36fd090fde1c32123158e94d222510f", "queue.lua");
static CONFIRM: Script = script!("confirm", "8d3572543a0d5a035377bcc2c5eec366b7cb83a6");
static CLOCK: Script = script!("clock", "73179ea6dcfd60ac218598930dbfdae0e28aeae0");
static RENEW: Script = script!("renew", "73841e047d27c26e2af779ff4c0a67433f8eb705");
static LOOK: Script = script!("look", "e9a5fe24962b29d80244c5db7171eea05c99870f", "queue.lua");

static CHECKED_ACQUIRE: Script =
    checked!("acquire", "61b60a355a1d294210a1a455f488cf36961b2726", "queue.lua", "rights.lua");
static CHECKED_CONFIRM: Script = checked!("confirm", "6bb5840afdb139771966224a2404570caf09cb30");
static CHECKED_RENEW: Script = checked!("renew", "3c7261b1fbc7bb95d945bdb1d46eb908208f7aa9");
static CHECKED_RESUME: Script =
    checked!("resume", "978fd52694e23ae16925abda4b9c0eced8abfaf2", "rights.lua");
static CHECKED_STEAL: Script =
    checked!("steal", "f6514c58fe8907ffc9e41c2e328256bc3675f2e0", "rights.lua");
static CHECKED_CLOCK: Script = checked!("clock", "498d2cb05fc3c12c18729adaf42d1367b844ba24");

/// Every script, for tests and for those who audit them.
pub static ALL: [&Script; 16] = [
    &ACQUIRE,
    &CONFIRM,
    &RENEW,
    &RELEASE,
    &RESUME,
    &STEAL,
    &FORCE_RELEASE,
    &INSPECT,
    &LOOK,
    &CLOCK,
    &CHECKED_ACQUIRE,
    &CHECKED_CONFIRM,
    &CHECKED_RENEW,
    &CHECKED_RESUME,
    &CHECKED_STEAL,
    &CHECKED_CLOCK,
];

/// A script with its keys and arguments: what is sent for one op.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call {
    /// The script.
    pub script: &'static Script,
    /// All keys it touches; servers and Cluster proxies refuse undeclared ones.
    pub keys: Vec<Vec<u8>>,
    /// Its arguments, the request number first.
    pub args: Vec<Vec<u8>>,
}

impl Call {
    /// What to send for an op under this request number.
    #[must_use]
    pub fn new(op: &Op, request: u64) -> Self {
        let mut call = Self {
            script: script_of(op),
            keys: Vec::with_capacity(4),
            args: vec![number(request)],
        };
        call.add(op.unchecked());
        if let Some(check) = op.check() {
            call.keys.push(MARKER_KEY.to_vec());
            call.args.extend(check_of(check));
        }
        call
    }

    fn add(&mut self, op: &Op) {
        let call = self;
        match op {
            Op::Acquire { key, token, ttl, proposal, place } => {
                call.keys_of(key);
                call.lease(token, *ttl);
                call.args.push(proposal.map(|p| number(p.get())).unwrap_or_default());
                call.args.extend(place.iter().flat_map(|place| place_of(place, token)));
            }
            Op::Resume { key, token, ttl } => {
                call.keys_of(key);
                call.lease(token, *ttl);
            }
            Op::Steal { key, token, ttl, any } => {
                call.keys_of(key);
                call.lease(token, *ttl);
                call.args.push(flag(*any));
            }
            Op::Confirm { key, token, ttl, number: least } => {
                call.keys_of(key);
                call.args.push(token.as_bytes().to_vec());
                call.args.push(number(least.get()));
                call.args.push(number(fence_ttl(*ttl)));
            }
            Op::Release { key, token, entries, bury, open_ms, number: least } => {
                call.keys_of(key);
                call.args.push(token.as_bytes().to_vec());
                call.args.push(flag(*bury));
                call.args.push(number(*open_ms));
                call.args.push(least.map(|least| number(least.get())).unwrap_or_default());
                call.args.extend(entries.iter().map(|entry| entry.member(token)));
            }
            Op::ForceRelease { key, token, any } => {
                call.keys_of(key);
                call.args.extend([token.as_bytes().to_vec(), flag(*any)]);
            }
            Op::Inspect { key, unproved } => {
                call.keys_of(key);
                call.args.push(Inspection::MOST_WAITERS.to_string().into_bytes());
                call.args.push(flag(*unproved));
            }
            // It is never inside another.
            Op::Clock | Op::Checked { .. } => {}
            Op::Renew(leases) => {
                for lease in leases {
                    call.keys.extend([lease.key.as_bytes().to_vec(), lease.key.fence()]);
                    call.lease(&lease.token, lease.ttl);
                }
            }
            Op::Look(looks) => {
                for Look { key, token, entry } in looks {
                    call.keys.extend([key.as_bytes().to_vec(), key.queue()]);
                    call.args.extend([token.as_bytes().to_vec(), entry.member(token)]);
                }
            }
        }
    }

    /// Has a script that begins a lease prove first that the user may run what later steps of it
    /// need: else it does nothing, and the server answers `NOPERM`. Returns whether the script is
    /// one of those.
    #[must_use]
    pub fn prove_rights(&mut self) -> bool {
        let op = self.script.name.trim_start_matches("checked ");
        let begins = matches!(op, "acquire" | "resume" | "steal");
        if begins {
            // The last of the op's own arguments.
            let of_check = if op == self.script.name { 0 } else { CHECK_ARGS };
            self.args.insert(self.args.len() - of_check, b"prove".to_vec());
        }
        begins
    }

    fn keys_of(&mut self, key: &LockKey) {
        self.keys.extend([key.as_bytes().to_vec(), key.fence(), key.queue()]);
    }

    fn lease(&mut self, token: &Token, ttl: Ttl) {
        self.args.push(token.as_bytes().to_vec());
        self.args.push(number(ttl.as_millis()));
        self.args.push(number(fence_ttl(ttl)));
    }
}

fn script_of(op: &Op) -> &'static Script {
    match op {
        Op::Acquire { .. } => &ACQUIRE,
        Op::Confirm { .. } => &CONFIRM,
        Op::Clock => &CLOCK,
        Op::Renew(_) => &RENEW,
        Op::Release { .. } => &RELEASE,
        Op::Resume { .. } => &RESUME,
        Op::Steal { .. } => &STEAL,
        Op::ForceRelease { .. } => &FORCE_RELEASE,
        Op::Inspect { .. } => &INSPECT,
        Op::Look(_) => &LOOK,
        Op::Checked { op, .. } => match **op {
            Op::Acquire { .. } => &CHECKED_ACQUIRE,
            Op::Confirm { .. } => &CHECKED_CONFIRM,
            Op::Renew(_) => &CHECKED_RENEW,
            Op::Resume { .. } => &CHECKED_RESUME,
            Op::Steal { .. } => &CHECKED_STEAL,
            _ => &CHECKED_CLOCK,
        },
    }
}

/// How many arguments a check has.
const CHECK_ARGS: usize = 5;

/// The arguments of a check, as `marker.lua` takes them away.
fn check_of(check: &MarkerCheck) -> [Vec<u8>; CHECK_ARGS] {
    let mode = match check.mode {
        MarkerMode::Check => "check",
        MarkerMode::Peek => "peek",
        MarkerMode::Open => "open",
    };
    [
        number(check.span_ms),
        number(check.client_ms),
        number(check.database),
        number(u64::from(check.is_durable)),
        mode.into(),
    ]
}

/// The arguments of a caller that waits: entry, ticket, earlier entry, suspect.
fn place_of(place: &Place, token: &Token) -> [Vec<u8>; 4] {
    [
        place.entry.member(token),
        place.ticket.map(|ticket| number(ticket.get())).unwrap_or_default(),
        place.previous.as_ref().map(|entry| entry.member(token)).unwrap_or_default(),
        place.suspect.as_ref().map(|channel| channel.as_bytes().to_vec()).unwrap_or_default(),
    ]
}

fn flag(flag: bool) -> Vec<u8> {
    number(u64::from(flag))
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_sha1_is_that_of_its_script() {
        for script in ALL {
            let sha1 = sha1_smol::Sha1::from(script.text).digest().to_string();
            assert_eq!(script.sha1, sha1, "{}", script.name);
        }
    }

    /// What is inside a script, in the order of the text.
    fn commands(text: &str) -> impl Iterator<Item = &str> {
        let calls = text.split("redis.call('").flat_map(|part| part.split("redis.pcall('"));
        calls.skip(1).filter_map(|part| part.split_once('\'').map(|(name, _)| name))
    }

    /// What only tells waiters, or is asked for by `inspect` alone, a lease can do without.
    #[test]
    fn every_command_that_a_lease_needs_is_checked() {
        let rights = include_str!("rights.lua").lines().skip_while(|l| !l.contains("local needed"));
        let needed: BTreeSet<_> =
            rights.take(2).flat_map(|l| l.split(['\'', ' '])).filter(|w| !w.is_empty()).collect();
        for script in ALL.iter().filter(|script| script.name != "inspect") {
            for command in commands(script.text) {
                let is_proved = needed.contains(command.to_ascii_lowercase().as_str());
                let can_be_missing = ["PUBSUB", "PUBLISH", "INFO"].contains(&command);
                assert!(is_proved ^ can_be_missing, "{command} in {}", script.name);
            }
        }
    }

    #[test]
    fn arguments_are_in_the_order_that_the_headers_say() {
        let key = LockKey::new("k").unwrap();
        let token: Token = format!("{}@h", "0".repeat(32)).parse().unwrap();
        let ttl = Ttl::new(std::time::Duration::from_secs(1)).unwrap();
        let call = Call::new(&Op::Acquire { key, token, ttl, proposal: None, place: None }, 7);
        assert_eq!(call.keys, [&b"k"[..], b"{k}:tenure.fence", b"{k}:tenure.queue"]);
        let args: Vec<_> = call.args.iter().map(|a| String::from_utf8_lossy(a)).collect();
        assert_eq!(args, ["7", &format!("{}@h", "0".repeat(32)), "1000", "86401000", ""]);
    }
}
