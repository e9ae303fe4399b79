//! The same ops as scripts for a server: their text, their arguments, and their replies.
//!
//! One op is one script and one round trip. Every script is given a request number and begins its
//! reply with it. The property test of this crate drives the scripts and [`Row`](crate::Row) with
//! the same sequences and demands equal replies.

mod reply;

pub use reply::{Answer, Misread, read};

use crate::{Inspection, LockKey, Look, Op, Place, Token, Ttl, fence_ttl};

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
macro_rules! script {
    ($name:literal, $sha1:literal $(, $library:literal)?) => {
        Script {
            name: $name,
            text: concat!(
                "local K, F, Q = KEYS[1], KEYS[2], KEYS[3]\n",
                include_str!("lib.lua"),
                $(include_str!($library),)?
                include_str!(concat!($name, ".lua"))
            ),
            sha1: $sha1,
        }
    };
}

static ACQUIRE: Script =
    script!("acquire", "c6949820cfc68df53c43b20468578a62d08a84c4", "queue.lua");
static RESUME: Script = script!("resume", "5e5af1edfe37eefa9538edadd2c51485f710efea");
static STEAL: Script = script!("steal", "6d074f61f31ac690383bb2929b47c9bb7a902ce3");
static RELEASE: Script =
    script!("release", "312b33916ee6137aeb8c193826229026d6d611a0", "queue.lua");
static FORCE_RELEASE: Script =
    script!("force_release", "9aa9ad976c37a7237a27c685434362ebd0484773", "queue.lua");
static INSPECT: Script =
    script!("inspect", "5dff0041b7c48df9524a7d441bff618ba603100b", "queue.lua");
static CONFIRM: Script = script!("confirm", "fa525a83c86990c810c139a4e69a703de369c53a");
static CLOCK: Script = script!("clock", "2a039be1f1d4b2cbb1c3e33a4c70bad8d5c8ae6d");
static RENEW: Script = script!("renew", "6fd564921f383bd32762f9bf915487cf01ca67dd");
static LOOK: Script = script!("look", "fdf46d473d0eef6ef0bb8f41e07736825b9df3ef", "queue.lua");

/// Every script, for tests and for those who audit them.
pub static ALL: [&Script; 10] = [
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
            keys: Vec::with_capacity(3),
            args: vec![number(request)],
        };
        match op {
            Op::Acquire { key, token, ttl, proposal, place } => {
                call.keys_of(key);
                call.lease(token, *ttl);
                call.args.push(proposal.map(|p| number(p.get())).unwrap_or_default());
                call.args.extend(place.iter().flat_map(|place| place_of(place, token)));
            }
            Op::Resume { key, token, ttl } | Op::Steal { key, token, ttl } => {
                call.keys_of(key);
                call.lease(token, *ttl);
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
                call.args.push(number(u64::from(*bury)));
                call.args.push(number(*open_ms));
                call.args.push(least.map(|least| number(least.get())).unwrap_or_default());
                call.args.extend(entries.iter().map(|entry| entry.member(token)));
            }
            Op::ForceRelease { key } => call.keys_of(key),
            Op::Inspect { key } => {
                call.keys_of(key);
                call.args.push(Inspection::MOST_WAITERS.to_string().into_bytes());
            }
            Op::Clock => {}
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
        call
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
    }
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

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sha1_is_that_of_its_script() {
        for script in ALL {
            let sha1 = sha1_smol::Sha1::from(script.text).digest().to_string();
            assert_eq!(script.sha1, sha1, "{}", script.name);
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
