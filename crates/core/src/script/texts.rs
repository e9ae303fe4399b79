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
    "487a64bcab660a11286cce6d9c82063466a28e2f",
    "364a67044b8e5d5bfc9090bf079ce3b484003d89",
    "lib/values" "lib/time" "lib/numbers" "lib/rights" "acquire" "lib/raise" "lib/keep"
    "lib/given_up" "lib/queue" "acquire_held" "lib/tell" "lib/serve" "acquire_queue"
}
both! {
    CONFIRM, CHECKED_CONFIRM, "confirm",
    "af1ff1ef111dc9d5ef858a90c8c778058278932d",
    "45b6e09604286e0a3939a8ebe82919c06d984f42",
    "lib/values" "lib/time" "lib/numbers" "lib/ahead" "lib/primary" "confirm"
}
both! {
    RENEW, CHECKED_RENEW, "renew",
    "cc96d4b09831f0a0ff24c16083ea11ea4464463c",
    "a8e168ea7988546ebc920480414d38d4daff0765",
    "lib/values" "lib/time" "lib/raise" "lib/primary" "renew"
}
both! {
    RESUME, CHECKED_RESUME, "resume",
    "f51f82dbba5362f5c65c3681d3e030716abb7732",
    "fe9d5a3103593501cf0f486cc2ee0a13a50a6d45",
    "lib/values" "lib/time" "lib/numbers" "lib/raise" "lib/keep" "lib/primary" "lib/rights"
    "resume"
}
both! {
    STEAL, CHECKED_STEAL, "steal",
    "a3f2ce1af49a43f1bdb9876f84468acbdcac5d3f",
    "15b62662889fa0e6381d14c6a1b65ae0bee6fb34",
    "lib/values" "lib/time" "lib/numbers" "lib/given_up" "lib/foreign" "lib/primary"
    "lib/rights" "steal"
}
both! {
    CLOCK, CHECKED_CLOCK, "clock",
    "757c943accb49e70feca17f304bbf73f36712ddb",
    "331c1ed007a25153c3983afbd2a3dc2636125274",
    "lib/time" "clock"
}
pub(super) static RELEASE: Script = script! {
    "release", "c9661ddb2eca10c0c4d821972333dc1d528f80a5",
    "lib/values" "lib/tell" "release" "lib/time" "lib/numbers" "lib/ahead" "lib/primary"
    "lib/queue" "lib/serve" "release_queue"
};
pub(super) static FORCE_RELEASE: Script = script! {
    "force_release", "e5ff9ee5a32ce2bcb1524a002eb869361aeaf17d",
    "lib/values" "lib/time" "lib/numbers" "lib/given_up" "lib/foreign" "lib/primary"
    "lib/queue" "lib/tell" "lib/serve" "force_release"
};
pub(super) static INSPECT: Script = script! {
    "inspect", "03f1906d5d83d378c7875d8061bd5466e7ea349d",
    "lib/values" "lib/time" "lib/numbers" "lib/queue" "inspect"
};
pub(super) static LOOK: Script = script! {
    "look", "adec7798e6d446629cd0a3e2f1cc38a50e657543",
    "lib/values" "lib/queue" "lib/primary" "look"
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
    &LOOK,
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
