//! A server's run: from its start to its end.

use std::{rc::Rc, sync::Arc};

/// One run of a server, as the connections to it learn of it.
///
/// A connection belongs to one run. So a run that is new at an address is a server that has
/// started since, or another one: either way it may know nothing of what was there before.
#[derive(Debug)]
pub(crate) struct Run {
    /// What the server calls it; `None` when it does not say.
    pub(crate) id: Option<Arc<str>>,
    /// It was another run that was seen at this address before.
    pub(crate) is_later: bool,
}

/// What a server reports of its run. Nothing where that is not permitted, or a proxy answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) id: Option<Arc<str>>,
}

impl Told {
    /// Reads the answer to `INFO server`.
    pub(crate) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        Self { id: field("run_id").map(Into::into) }
    }
}

impl Run {
    /// The run that a new connection has met, when another may have been there before. Without a
    /// name each connection may have met another.
    pub(crate) fn met(told: &Told, before: Option<&Rc<Self>>) -> Rc<Self> {
        match before {
            Some(run) if told.id.is_some() && told.id == run.id => Rc::clone(run),
            _ => Rc::new(Self { id: told.id.clone(), is_later: before.is_some() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: &str) -> Told {
        Told::read(&format!("# Server\r\nrun_id:{id}\r\nuptime_in_seconds:7\r\n"))
    }

    #[test]
    fn a_server_instance_lasts_until_another_run_id_is_read() {
        let first = Run::met(&told("a"), None);
        assert!(!first.is_later);
        assert!(Rc::ptr_eq(&first, &Run::met(&told("a"), Some(&first))));
        assert!(Run::met(&told("b"), Some(&first)).is_later);
    }

    #[test]
    fn without_a_run_id_each_connection_may_be_to_another_instance() {
        let silent = Run::met(&told(""), None);
        assert!(silent.id.is_none() && !silent.is_later);
        assert!(Run::met(&told(""), Some(&silent)).is_later);
        assert!(Run::met(&told("a"), Some(&silent)).is_later);
    }
}
