//! A server instance: from its start to its end.

use std::{rc::Rc, sync::Arc};

/// One instance of a server, as the connections to it learn of it.
///
/// A connection belongs to one instance. So an instance that is new at an address is a server that
/// has started since, or another one: either way it may know nothing of what was there before.
#[derive(Debug)]
pub(crate) struct ServerInstance {
    /// What the server calls it; `None` when it does not say.
    pub(crate) id: Option<Arc<str>>,
    /// It was another instance that was seen at this address before.
    pub(crate) is_later: bool,
}

/// What a server reports of its instance. Nothing where that is not permitted, or a proxy answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerInfo {
    pub(crate) id: Option<Arc<str>>,
}

impl ServerInfo {
    /// Reads the answer to `INFO server`.
    pub(crate) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        Self { id: field("run_id").map(Into::into) }
    }
}

impl ServerInstance {
    /// The instance that a new connection has met, when another may have been there before. Without
    /// a name each connection may have met another.
    pub(crate) fn met(info: &ServerInfo, before: Option<&Rc<Self>>) -> Rc<Self> {
        match before {
            Some(instance) if info.id.is_some() && info.id == instance.id => Rc::clone(instance),
            _ => Rc::new(Self { id: info.id.clone(), is_later: before.is_some() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str) -> ServerInfo {
        ServerInfo::read(&format!("# Server\r\nrun_id:{id}\r\nuptime_in_seconds:7\r\n"))
    }

    #[test]
    fn a_server_instance_lasts_until_another_run_id_is_read() {
        let first = ServerInstance::met(&info("a"), None);
        assert!(!first.is_later);
        assert!(Rc::ptr_eq(&first, &ServerInstance::met(&info("a"), Some(&first))));
        assert!(ServerInstance::met(&info("b"), Some(&first)).is_later);
    }

    #[test]
    fn without_a_run_id_each_connection_may_be_to_another_instance() {
        let silent = ServerInstance::met(&info(""), None);
        assert!(silent.id.is_none() && !silent.is_later);
        assert!(ServerInstance::met(&info(""), Some(&silent)).is_later);
        assert!(ServerInstance::met(&info("a"), Some(&silent)).is_later);
    }
}
