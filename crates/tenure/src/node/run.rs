//! A server's run: from its start to its end.

use std::{rc::Rc, sync::Arc, time::Duration};

use tenure_core::Timestamp;

/// One run of a server, as the connections to it learn of it.
///
/// A connection belongs to one run. So a run that is new at an address is a server that has
/// started since, or another one: either way it may know nothing of what was there before.
#[derive(Debug)]
pub(crate) struct Run {
    /// What the server calls it; `None` when it does not tell.
    pub(crate) id: Option<Arc<str>>,
    /// How old it was at least when it was first seen, by the server's wall clock; `None` when it
    /// does not tell.
    pub(crate) age: Option<Duration>,
    /// When it was first seen.
    pub(crate) seen: Timestamp,
    /// It was another run that was seen at this address before.
    pub(crate) is_later: bool,
}

/// What a server tells of its run. Nothing where it is not permitted to, or a proxy answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) id: Option<Arc<str>>,
    /// In whole seconds of its wall clock, which may step.
    pub(crate) uptime: Option<Duration>,
}

impl Told {
    /// Reads the answer to `INFO server`.
    pub(crate) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let seconds = field("uptime_in_seconds").and_then(|text| text.parse::<i64>().ok());
        // A clock that was set back makes it negative.
        let uptime = seconds.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or(0)));
        Self { id: field("run_id").map(Into::into), uptime }
    }
}

impl Run {
    /// The run that a new connection has met, when another may have been there before.
    ///
    /// One that does not tell its name is told from the one before by its uptime; without even
    /// that each connection may have met another.
    pub(crate) fn met(told: &Told, before: Option<&Rc<Self>>, now: Timestamp) -> Rc<Self> {
        match before {
            Some(run) if told.id.is_some() && told.id == run.id => Rc::clone(run),
            _ => Rc::new(Self {
                id: told.id.clone(),
                // Start and now are both cut to whole seconds, so it may be one too many.
                age: told.uptime.map(|uptime| uptime.saturating_sub(Duration::from_secs(1))),
                seen: now,
                is_later: before.is_some() && (told.id.is_some() || told.uptime.is_none()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_nanos(secs * 1_000_000_000)
    }

    fn told(id: &str, uptime: &str) -> Told {
        Told::read(&format!("# Server\r\nrun_id:{id}\r\nuptime_in_seconds:{uptime}\r\n"))
    }

    #[test]
    fn a_run_goes_on_until_the_server_tells_another() {
        let first = Run::met(&told("a", "100"), None, at(5));
        assert_eq!(first.age, Some(Duration::from_secs(99)));
        assert!(!first.is_later);
        let same = Run::met(&told("a", "0"), Some(&first), at(9));
        assert!(Rc::ptr_eq(&first, &same));
        // Its uptime follows the wall clock, and says nothing here.
        let next = Run::met(&told("b", "100"), Some(&first), at(9));
        assert!(next.is_later && next.seen == at(9));
    }

    #[test]
    fn a_run_without_a_name_is_known_by_its_uptime_or_not_at_all() {
        let first = Run::met(&told("", "100"), None, at(5));
        assert!(first.id.is_none() && !first.is_later);
        let next = Run::met(&told("", "1"), Some(&first), at(9));
        assert!(!next.is_later && next.age == Some(Duration::ZERO));
        let silent = Run::met(&Told::default(), None, at(5));
        assert!(silent.age.is_none() && !silent.is_later);
        assert!(Run::met(&Told::default(), Some(&silent), at(9)).is_later);
        assert!(Run::met(&told("a", "100"), Some(&silent), at(9)).is_later);
    }

    #[test]
    fn an_uptime_is_read_whatever_the_clock_says() {
        assert_eq!(told("a", "-3600").uptime, Some(Duration::ZERO));
        assert_eq!(told("a", "x").uptime, None);
    }
}
