//! The same ops as scripts for a server: their text, their arguments, and their replies.
//!
//! One op is one script and one round trip. Every script is given a request number and begins its
//! reply with it. The property test of this crate drives the scripts and [`Row`](crate::Row) with
//! the same sequences and demands equal replies.

mod reply;

pub use reply::{Answer, Misread, read};

use crate::{LockKey, Op, Token, Ttl, fence_ttl};

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

/// Scripts on one lock: `K` and `F`, the library, the body.
macro_rules! script {
    ($name:literal, $sha1:literal) => {
        Script {
            name: $name,
            text: concat!(
                "local K, F = KEYS[1], KEYS[2]\n",
                include_str!("lib.lua"),
                include_str!(concat!($name, ".lua"))
            ),
            sha1: $sha1,
        }
    };
}

static ACQUIRE: Script = script!("acquire", "883d58be353e6070b89e78146ffca4ef81f0ffd2");
static RESUME: Script = script!("resume", "9640ccba938c83eacf172deb1fdac5381d5136ae");
static STEAL: Script = script!("steal", "13c6fe57b06f93f456f3cc147676e7d0979d5cf9");
static RELEASE: Script = script!("release", "25ac64ee26ae866827dcec4850ef0ad726eedba2");
static FORCE_RELEASE: Script = script!("force_release", "ed604e9277cfa2f3d4adb2dd54cfc22e43b67ec0");
static INSPECT: Script = script!("inspect", "f78f647351d57702229fd7db95f781da7a86d46d");
static RENEW: Script = script!("renew", "79c2b3c3f4c718a9449f4bf249378af2b79db005");

/// Every script, for tests and for those who audit them.
pub static ALL: [&Script; 7] =
    [&ACQUIRE, &RENEW, &RELEASE, &RESUME, &STEAL, &FORCE_RELEASE, &INSPECT];

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
            keys: Vec::with_capacity(2),
            args: vec![number(request)],
        };
        match op {
            Op::Acquire { key, token, ttl }
            | Op::Resume { key, token, ttl }
            | Op::Steal { key, token, ttl } => {
                call.key(key);
                call.lease(token, *ttl);
            }
            Op::Release { key, token } => {
                call.key(key);
                call.args.push(token.as_bytes().to_vec());
            }
            Op::ForceRelease { key } | Op::Inspect { key } => call.key(key),
            Op::Renew(leases) => {
                for lease in leases {
                    call.key(&lease.key);
                    call.lease(&lease.token, lease.ttl);
                }
            }
        }
        call
    }

    fn key(&mut self, key: &LockKey) {
        self.keys.push(key.as_bytes().to_vec());
        self.keys.push(key.fence());
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
        Op::Renew(_) => &RENEW,
        Op::Release { .. } => &RELEASE,
        Op::Resume { .. } => &RESUME,
        Op::Steal { .. } => &STEAL,
        Op::ForceRelease { .. } => &FORCE_RELEASE,
        Op::Inspect { .. } => &INSPECT,
    }
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
        let call = Call::new(&Op::Acquire { key, token, ttl }, 7);
        assert_eq!(call.keys, [&b"k"[..], b"{k}:tenure.fence"]);
        let args: Vec<_> = call.args.iter().map(|a| String::from_utf8_lossy(a)).collect();
        assert_eq!(args, ["7", &format!("{}@h", "0".repeat(32)), "1000", "86401000"]);
    }
}
