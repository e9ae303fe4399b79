//! The text of each script, put together from the files beside this one.

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

/// The keys, then these files one after another.
macro_rules! text {
    ($($part:literal)*) => {
        concat!(
            "local K, F, Q = KEYS[1], KEYS[2], KEYS[3]\n",
            $(include_str!(concat!($part, ".lua")),)*
        )
    };
}

macro_rules! script {
    ($name:literal, $sha1:literal, $($part:literal)*) => {
        Script { name: $name, text: text!($($part)*), sha1: $sha1 }
    };
}

/// The same op, behind the check of the server's marker.
macro_rules! checked {
    ($name:literal, $sha1:literal, $($part:literal)*) => {
        Script {
            name: concat!("checked ", $name),
            text: concat!(
                include_str!("lib/marker.lua"),
                "\nlocal function op()\n",
                text!($($part)*),
                "end\n",
                include_str!("lib/checked.lua")
            ),
            sha1: $sha1,
        }
    };
}

/// A script that may also run behind the check: both, from the same files.
macro_rules! both {
    ($plain:ident, $checked:ident, $name:literal, $sha1:literal, $checked_sha1:literal,
     $($part:literal)*) => {
        pub(super) static $plain: Script = script!($name, $sha1, $($part)*);
        pub(super) static $checked: Script = checked!($name, $checked_sha1, $($part)*);
    };
}

both! {
    ACQUIRE, CHECKED_ACQUIRE, "acquire",
    "143e0dae38c1790968ae0e59915203e7920a21d7",
    "6b985cd89d1eb245fbed52e194d2214eea4942c8",
    "lib/values" "lib/time" "lib/numbers" "lib/rights" "acquire" "lib/raise" "lib/keep"
    "lib/given_up" "lib/queue" "acquire_held" "lib/notify" "lib/serve" "acquire_queue"
}
both! {
    CONFIRM, CHECKED_CONFIRM, "confirm",
    "d2c4740dcca4aee38bb30b2f02375fa2e0fecb61",
    "a575a25762da6c1f31fab1f4c60039b881276c91",
    "lib/values" "lib/time" "lib/numbers" "lib/ahead" "lib/primary" "confirm"
}
both! {
    RENEW, CHECKED_RENEW, "renew",
    "cc96d4b09831f0a0ff24c16083ea11ea4464463c",
    "53af8dea4dafca19deace8d6b741c4105ca5e771",
    "lib/values" "lib/time" "lib/raise" "lib/primary" "renew"
}
both! {
    RESUME, CHECKED_RESUME, "resume",
    "a5759b08fa2c31f1a8c143ecdafd3e07c23ff696",
    "69df3d9c1ef29d3e13738915bcfaddf5ef30ddd6",
    "lib/values" "lib/time" "lib/numbers" "lib/raise" "lib/keep" "lib/primary" "lib/rights"
    "resume"
}
both! {
    STEAL, CHECKED_STEAL, "steal",
    "be50eb0799f29cf9f4fcba219b432df021cdfdec",
    "825bfdaad2599b1e344d0c1230fbd757d60b99d2",
    "lib/values" "lib/time" "lib/numbers" "lib/given_up" "lib/foreign" "lib/primary"
    "lib/rights" "steal"
}
both! {
    CLOCK, CHECKED_CLOCK, "clock",
    "20b0d440f1f6b76e944f371a2d709ef50acd8ba1",
    "3b14d9351724c9c0dca57245a153ba13b1fccc1d",
    "lib/time" "clock"
}
pub(super) static RELEASE: Script = script! {
    "release", "454391d6bce1a91d3993e37c9c811f68043fbafa",
    "lib/values" "lib/notify" "release" "lib/time" "lib/numbers" "lib/ahead" "lib/primary"
    "lib/queue" "lib/serve" "release_queue"
};
pub(super) static FORCE_RELEASE: Script = script! {
    "force_release", "8de5291a1f8608020326b02fac3fe2c797d87c90",
    "lib/values" "lib/time" "lib/numbers" "lib/given_up" "lib/foreign" "lib/primary"
    "lib/queue" "lib/notify" "lib/serve" "force_release"
};
pub(super) static INSPECT: Script = script! {
    "inspect", "583efbd000eb2c72ce731dc4d162fe2096149fad",
    "lib/values" "lib/time" "lib/numbers" "lib/queue" "inspect"
};
pub(super) static POLL: Script = script! {
    "poll", "6305afea8885ae2ec1160c510e357530a9eeb569",
    "lib/values" "lib/queue" "lib/primary" "poll"
};

/// Every script, for tests and audits.
pub static ALL: [&Script; 16] = [
    &ACQUIRE,
    &CONFIRM,
    &RENEW,
    &RELEASE,
    &RESUME,
    &STEAL,
    &FORCE_RELEASE,
    &INSPECT,
    &POLL,
    &CLOCK,
    &CHECKED_ACQUIRE,
    &CHECKED_CONFIRM,
    &CHECKED_RENEW,
    &CHECKED_RESUME,
    &CHECKED_STEAL,
    &CHECKED_CLOCK,
];

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

    /// A lease needs no permission that only notifies waiters, or that only `inspect` uses.
    #[test]
    fn every_command_that_a_lease_needs_is_checked() {
        let rights =
            include_str!("lib/rights.lua").lines().skip_while(|l| !l.contains("local needed"));
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
}
