//! What is known of one of several nodes.

use std::{rc::Rc, sync::Arc, time::Duration};

use tenure_core::{Closure, Eligibility, MarkerCause, MarkerCheck, MarkerMode, Timestamp, Ttl};

use super::clock::WallClock;
use crate::{
    clock as local,
    error::{NodeError, NodeErrorKind},
    event::{self, NodeWarning},
    node::{Node, ServerInstance},
};

#[derive(Debug)]
pub(super) struct VoterRecord {
    node: Rc<dyn Node>,
    /// The database that is selected there.
    database: u32,
    /// It keeps its keys over a restart, as its address says.
    is_durable: bool,
    instance: Option<Rc<ServerInstance>>,
    /// The node that this one is a second address of.
    same_as: Option<Arc<str>>,
    pub(super) clock: WallClock,
    logged: LoggedStates,
}

/// What was logged.
#[derive(Debug, Default)]
struct LoggedStates {
    /// That it is closed, for locks of this TTL.
    closed: Option<Ttl>,
    /// That the node hides its runs.
    hidden: bool,
    /// That it is no primary, while that is so.
    not_primary: bool,
}

impl VoterRecord {
    pub(super) fn new(node: Rc<dyn Node>, database: u32, is_durable: bool) -> Self {
        let (clock, logged) = (WallClock::default(), LoggedStates::default());
        Self { node, database, is_durable, instance: None, same_as: None, clock, logged }
    }

    /// The instance that it was last known to be, and its name; `None` for a second address.
    pub(super) fn server(&self) -> Option<(Arc<str>, Arc<str>)> {
        if self.same_as.is_some() {
            return None;
        }
        Some((self.instance.as_ref()?.id.clone()?, Arc::clone(self.node.name())))
    }

    /// Whether its connection has met an instance that is not known yet, or it may be no second
    /// address any more.
    pub(super) fn has_changed(&self) -> bool {
        let met = self.node.instance();
        self.same_as.is_some()
            || met.as_ref().map(Rc::as_ptr) != self.instance.as_ref().map(Rc::as_ptr)
    }

    /// Takes the instance that the last connection has met, and what is known of the others.
    ///
    /// The one that was known first keeps its vote: it may have voted in an attempt that goes on.
    pub(super) fn meet(&mut self, others: &[(Arc<str>, Arc<str>)]) {
        let Some(instance) = self.node.instance() else { return };
        let same = others.iter().find(|(id, _)| instance.id.as_ref() == Some(id));
        let same_as = same.map(|(_, name)| Arc::clone(name));
        if let Some(other) = &same_as
            && self.same_as.is_none()
        {
            self.log(NodeWarning::SameServer, &format!("it is {other}, by another address"));
        }
        self.same_as = same_as;
        if instance.id.is_none() && !self.logged.hidden {
            self.logged.hidden = true;
            self.log(NodeWarning::RunHidden, HIDDEN);
        }
        if !self.instance.as_ref().is_some_and(|known| Rc::ptr_eq(known, &instance)) {
            self.clock.forget();
            self.logged.closed = None;
            self.instance = Some(instance);
        }
    }

    /// Logs, once, a server that is no primary.
    pub(super) fn check_role(&mut self) {
        let trouble = self.node.trouble();
        let is_none = trouble.is_some_and(|error| error.kind() == NodeErrorKind::ReadOnly);
        if is_none && !self.logged.not_primary {
            self.log(NodeWarning::NotPrimary, "it is a replica, which has no vote");
        }
        self.logged.not_primary = is_none;
    }

    /// Whether its answers count for anything.
    pub(super) fn is_counted(&self) -> Result<(), NodeError> {
        let Some(other) = &self.same_as else { return Ok(()) };
        let error = self.error(NodeErrorKind::SameServer);
        Err(error.with_source(format!("it is {other}, by another address")))
    }

    /// Whether its grant is a vote at `now`.
    pub(super) fn judge(&mut self, now: Timestamp, longest: Ttl) -> Result<(), NodeError> {
        self.is_counted()?;
        let Some(step) = self.clock.stepped(now, longest) else { return Ok(()) };
        let whither = if step.is_forward { "forward" } else { "back" };
        let (by, ago, left) =
            (secs(step.by), secs(now.since(step.seen)), secs(step.until.since(now)));
        let why = format!("by {by} {whither}, noticed {ago} ago; it votes in {left}");
        if step.is_first {
            self.log(NodeWarning::ClockStepped, &why);
        }
        let error = self.error(NodeErrorKind::ClockStepped).with_source(why);
        Err(error.eligible_in(step.until.since(now)))
    }

    /// What a request brings to its marker.
    pub(super) fn check(&self, longest: Ttl, mode: MarkerMode) -> MarkerCheck {
        let span = MarkerCheck::span(longest).as_millis();
        MarkerCheck {
            // Far above every time that a clock can show.
            span_ms: u64::try_from(span).unwrap_or(u64::MAX).min(Ttl::MAX_MS - 1),
            client_ms: local::node_time().wall_us / 1_000,
            database: self.database.into(),
            is_durable: self.is_durable,
            mode,
        }
    }

    /// Takes what its marker says.
    pub(super) fn marked(
        &mut self,
        longest: Ttl,
        eligibility: Eligibility,
    ) -> Result<(), NodeError> {
        let closure = match eligibility {
            Eligibility::Closed(closure) => closure,
            Eligibility::Eligible | Eligibility::Opened => {
                self.logged.closed.take_if(|logged| *logged <= longest);
                return Ok(());
            }
        };
        let (cause, left) = match closure {
            Closure::Forgetful(cause, left) => (cause, left),
            Closure::Hidden => {
                return Err(self.error(NodeErrorKind::NoPermission).with_source(NO_INFO));
            }
            Closure::Unusable => return Err(self.error(NodeErrorKind::MarkerUnusable)),
        };
        let (why, or_else) = match cause {
            MarkerCause::New => ("it has no marker yet: it is new, or it was emptied", INIT),
            MarkerCause::Changed if self.is_durable => (CHANGED, ""),
            MarkerCause::Changed => (CHANGED, DURABLE),
        };
        let why = format!("{why}; it votes in {}{or_else}", secs(left));
        if self.logged.closed.replace(longest).is_none() {
            let is_known = self.instance.as_ref().is_some_and(|instance| instance.is_later);
            let warning = match cause {
                MarkerCause::New if !is_known => NodeWarning::Unmarked,
                _ => NodeWarning::Restarted,
            };
            self.log(warning, &why);
        }
        Err(self.error(NodeErrorKind::Restarted).with_source(why).eligible_in(left))
    }

    fn log(&self, warning: NodeWarning, words: &str) {
        event::node_warning(self.node.name(), warning, words);
    }

    /// The request may still be executed, and is to be undone.
    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(self.node.name(), kind).maybe_applied()
    }
}

fn secs(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

const CHANGED: &str = "it restarted, or was a replica, since its marker was written";

const INIT: &str = ", or at once after `tenure init`, if nobody holds a lock that it may have lost";

const DURABLE: &str = ", or at once after a restart with `?durable=yes` in its address, if it \
                       keeps its keys";

const NO_INFO: &str = "scripts need the command INFO, by which the server shows that it is the one \
                       that granted a lock";

const HIDDEN: &str = "it does not show its run id (`INFO server`), so a second address of it is \
                      not noticed";
