//! The same ops as scripts for a server: their text, their arguments, and their replies.
//!
//! One op is one script and one round trip. Every script is given a request number and begins its
//! reply with it. The property test of this crate drives the scripts and [`Row`](crate::Row) with
//! the same sequences and demands equal replies.

mod reply;
mod texts;

pub use reply::{Answer, Misread, read};
pub use texts::{ALL, Script};

use texts::{
    ACQUIRE, CHECKED_ACQUIRE, CHECKED_CLOCK, CHECKED_CONFIRM, CHECKED_RENEW, CHECKED_RESUME,
    CHECKED_STEAL, CLOCK, CONFIRM, FORCE_RELEASE, INSPECT, POLL, RELEASE, RENEW, RESUME, STEAL,
};

use crate::{
    Inspection, LockKey, MARKER_KEY, MarkerCheck, MarkerMode, Op, Place, Poll, Token, Ttl,
    fence_ttl,
};

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
            Op::Release { key, token, entries, leave_tombstone, yield_ms, number: least } => {
                call.keys_of(key);
                call.args.push(token.as_bytes().to_vec());
                call.args.push(flag(*leave_tombstone));
                call.args.push(number(*yield_ms));
                call.args.push(least.map(|least| number(least.get())).unwrap_or_default());
                call.args.extend(entries.iter().map(|entry| entry.member(token)));
            }
            Op::ForceRelease { key, token, any } => {
                call.keys_of(key);
                call.args.extend([token.as_bytes().to_vec(), flag(*any)]);
            }
            Op::Inspect { key, unproved } => {
                call.keys_of(key);
                call.args.push(Inspection::MAX_WAITERS.to_string().into_bytes());
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
            Op::Poll(polls) => {
                for Poll { key, token, entry } in polls {
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
        Op::Poll(_) => &POLL,
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
    use super::*;

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
