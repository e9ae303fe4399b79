//! What is known of one of several nodes.

use std::{rc::Rc, sync::Arc, time::Duration};

use tenure_core::{Timestamp, Ttl};

use super::{clock::WallClock, span};
use crate::{
    error::{NodeError, NodeErrorKind},
    event::{self, NodeNews},
    node::{Node, Run},
};

#[derive(Debug)]
pub(super) struct Record {
    node: Rc<dyn Node>,
    /// It keeps its keys over a restart, as its address says.
    is_durable: bool,
    run: Option<Rc<Run>>,
    /// The node that this one is a second address of.
    same_as: Option<Arc<str>>,
    pub(super) clock: WallClock,
    told: Told,
}

/// What the log was told.
#[derive(Debug, Default)]
struct Told {
    /// That this run is doubted.
    doubted: bool,
    /// That the node hides its runs.
    hidden: bool,
    /// That it is no primary, while that is so.
    not_primary: bool,
}

impl Record {
    pub(super) fn new(node: Rc<dyn Node>, is_durable: bool) -> Self {
        let (clock, told) = (WallClock::default(), Told::default());
        Self { node, is_durable, run: None, same_as: None, clock, told }
    }

    /// The run that it was last known to be, and its name; `None` for a second address.
    pub(super) fn server(&self) -> Option<(Arc<str>, Arc<str>)> {
        if self.same_as.is_some() {
            return None;
        }
        Some((self.run.as_ref()?.id.clone()?, Arc::clone(self.node.name())))
    }

    /// Whether its connection has met a run that is not known yet, or it may be no second address
    /// any more.
    pub(super) fn has_news(&self) -> bool {
        let met = self.node.run();
        self.same_as.is_some() || met.as_ref().map(Rc::as_ptr) != self.run.as_ref().map(Rc::as_ptr)
    }

    /// Takes the run that the last connection has met, and what is known of the others.
    ///
    /// The one that was known first keeps its vote: it may have voted in an attempt that goes on.
    pub(super) fn meet(&mut self, others: &[(Arc<str>, Arc<str>)]) {
        let Some(run) = self.node.run() else { return };
        let same = others.iter().find(|(id, _)| run.id.as_ref() == Some(id));
        let same_as = same.map(|(_, name)| Arc::clone(name));
        if let Some(other) = &same_as
            && self.same_as.is_none()
        {
            self.tell(NodeNews::SameServer, &format!("it is {other}, by another address"));
        }
        self.same_as = same_as;
        if run.id.is_none() && !self.told.hidden {
            self.told.hidden = true;
            self.tell(NodeNews::RunHidden, HIDDEN);
        }
        if !self.run.as_ref().is_some_and(|known| Rc::ptr_eq(known, &run)) {
            self.clock.forget();
            self.told.doubted = false;
            self.run = Some(run);
        }
    }

    /// Tells, once, of a server that is no primary.
    pub(super) fn look_at_role(&mut self) {
        let trouble = self.node.trouble();
        let is_none = trouble.is_some_and(|error| error.kind() == NodeErrorKind::ReadOnly);
        if is_none && !self.told.not_primary {
            self.tell(NodeNews::NotPrimary, "it is a replica, which has no vote");
        }
        self.told.not_primary = is_none;
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
        if let Some(until) = self.forgetful_until(span(longest)).filter(|until| now < *until) {
            let (news, why) = self.why_forgetful(now);
            let why =
                format!("{why}; it votes in {}, or at once {DURABLE}", secs(until.since(now)));
            if !std::mem::replace(&mut self.told.doubted, true) {
                self.tell(news, &why);
            }
            return Err(self.error(NodeErrorKind::Restarted).with_source(why));
        }
        let Some(jump) = self.clock.jumped(now, longest) else { return Ok(()) };
        let whither = if jump.is_forward { "forward" } else { "back" };
        let (by, ago, left) =
            (secs(jump.by), secs(now.since(jump.seen)), secs(jump.until.since(now)));
        let why = format!("by {by} {whither}, noticed {ago} ago; it votes in {left}");
        if jump.is_news {
            self.tell(NodeNews::ClockJumped, &why);
        }
        Err(self.error(NodeErrorKind::ClockJumped).with_source(why))
    }

    /// Until when others may hold what it has forgotten.
    fn forgetful_until(&self, span: Duration) -> Option<Timestamp> {
        let run = self.run.as_ref().filter(|_| !self.is_durable)?;
        // An uptime follows the wall clock: it is not believed where something better is known.
        let left = if run.is_later { span } else { span.saturating_sub(run.age?) };
        Some(run.seen + left)
    }

    fn why_forgetful(&self, now: Timestamp) -> (NodeNews, String) {
        let seen = self.run.as_ref().map_or(now, |run| run.seen);
        let age = self.run.as_ref().filter(|run| !run.is_later).and_then(|run| run.age);
        match age {
            Some(age) => {
                let age = secs(age + now.since(seen));
                (NodeNews::Young, format!("it started about {age} ago"))
            }
            None => {
                let ago = secs(now.since(seen));
                (NodeNews::Restarted, format!("its restart was noticed {ago} ago"))
            }
        }
    }

    fn tell(&self, news: NodeNews, words: &str) {
        event::node_news(self.node.name(), news, words);
    }

    /// What was asked may be done all the same, and is to be undone.
    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(self.node.name(), kind).maybe_applied()
    }
}

fn secs(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

const DURABLE: &str = "with `?durable=yes` in its address, if it keeps its keys over a restart";

const HIDDEN: &str = "it does not tell its run (`INFO server`), so a restart is noticed by its \
                      uptime at best, and a second address of it not at all";
