//! Renewing leases, in the background and for their holders.

use std::{cell::RefCell, collections::HashMap, future::Future, pin::Pin, rc::Rc, time::Duration};

use tenure_core::{LossReason, NodeId, Op, Renewal, RenewalAnswer, Reply, Timestamp, Ttl};
use tokio::sync::oneshot;

use super::{
    lease::LeaseId,
    state::{State, command_limit},
    tally::{Said, Tally, Verdict},
};
use crate::{
    clock,
    error::{ExtendError, NodeError, NodeErrorKind},
    node, task,
};

/// Leases to renew on one node, in one call.
type Batch = Vec<(LeaseId, Renewal)>;

/// Renewals of some leases on all nodes, and what each lease's come to.
struct Round {
    sent: Timestamp,
    leases: RefCell<HashMap<LeaseId, OneLease>>,
}

struct OneLease {
    ttl: Ttl,
    tally: Tally,
    verdict: Option<Verdict>,
    /// Nodes that have no key, and could.
    missing: Vec<NodeId>,
    /// It is an extension, not a renewal in the background.
    is_extension: bool,
    /// Its holder waits for the verdict.
    asked: Option<oneshot::Sender<Verdict>>,
}

impl State {
    /// Renews and tells losses, for as long as the engine runs.
    pub(super) async fn run_renewals(self: Rc<Self>) {
        loop {
            tokio::select! {
                () = self.timers.sleep_until(self.leases.next()) => {}
                () = self.leases.sooner() => continue,
            }
            let mut renewals = self.leases.take_due(clock::now());
            let is_several = self.nodes.sole().is_none();
            let watched = renewals.iter().filter(|_| is_several).map(|(id, _)| *id).collect();
            while !renewals.is_empty() {
                let rest = renewals.split_off(renewals.len().min(MOST_IN_A_BATCH));
                self.begin_round(std::mem::replace(&mut renewals, rest), None);
                // Others' ops go between the batches.
                tokio::task::yield_now().await;
            }
            self.watch_clocks(watched);
        }
    }

    /// Looks, beside a renewal of these leases, whether the nodes would still vote on their locks:
    /// so a clock that jumped is told while it matters, and not when the next one acquires.
    fn watch_clocks(self: &Rc<Self>, leases: Vec<LeaseId>) {
        let leases = Rc::new(leases);
        for (node, _) in self.nodes.iter().filter(|_| !leases.is_empty()) {
            let limit = command_limit(Duration::MAX);
            let told = self.nodes.call(node, Op::Clock, limit * 2);
            let (state, leases) = (Rc::clone(self), Rc::clone(&leases));
            task::spawn(async move {
                // Given up before its time limit: that the node hangs is for the renewal to find.
                let end = clock::now() + limit;
                tokio::select! {
                    _ = told => {}
                    () = state.timers.sleep_until(end) => return,
                }
                // What it says was taken on the way, and what there is to tell is told to the log.
                for longest_ttl in leases.iter().filter_map(|id| state.leases.longest_ttl(*id)) {
                    _ = state.nodes.judge(node, longest_ttl);
                }
            });
        }
    }

    /// Renews a batch on every node. The answer of none waits for another's.
    fn begin_round(self: &Rc<Self>, batch: Batch, mut asked: Option<oneshot::Sender<Verdict>>) {
        let leases = batch.iter().map(|(id, renewal)| {
            let tally = Tally::new(self.nodes.quorum());
            let asked = asked.take();
            let lease = OneLease {
                ttl: renewal.ttl,
                tally,
                verdict: None,
                missing: Vec::new(),
                is_extension: asked.is_some(),
                asked,
            };
            (*id, lease)
        });
        let leases = RefCell::new(leases.collect());
        let round = Rc::new(Round { sent: clock::now(), leases });
        for (node, _) in self.nodes.iter().skip(1) {
            task::spawn(Rc::clone(self).renew(node, Rc::clone(&round), batch.clone()));
        }
        task::spawn(Rc::clone(self).renew(NodeId(0), round, batch));
    }

    /// Renews a batch on one node. One that the user may not touch must not harm the others: then
    /// by halves.
    fn renew(
        self: Rc<Self>,
        node: NodeId,
        round: Rc<Round>,
        batch: Batch,
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            match self.ask_renewals(node, &batch).await {
                Err(error) if error.kind() == NodeErrorKind::NoPermission && batch.len() > 1 => {
                    let mut first = batch;
                    let second = first.split_off(first.len() / 2);
                    task::spawn(Rc::clone(&self).renew(node, Rc::clone(&round), first));
                    task::spawn(Rc::clone(&self).renew(node, round, second));
                }
                Err(error) => {
                    for (id, _) in &batch {
                        self.renewed(&round, *id, node, &Err(error.clone()));
                    }
                }
                Ok(answers) => {
                    for ((id, _), answer) in batch.iter().zip(answers) {
                        let answer = match answer {
                            RenewalAnswer::Refused(words) => {
                                Err(node::refusal(self.nodes.get(node).name(), &words))
                            }
                            answer => Ok(answer),
                        };
                        self.renewed(&round, *id, node, &answer);
                    }
                }
            }
        })
    }

    /// Takes one node's answer for one lease.
    fn renewed(
        self: &Rc<Self>,
        round: &Round,
        id: LeaseId,
        node: NodeId,
        answer: &Result<RenewalAnswer, NodeError>,
    ) {
        let mut leases = round.leases.borrow_mut();
        let Some(lease) = leases.get_mut(&id) else { return };
        let said = match (answer, lease.is_extension) {
            // What an extension cannot be told of is its caller's affair.
            (Err(error), true) => Some(Said::Untold(error.clone())),
            _ => self.leases.counted(id, node, answer),
        };
        let Some(said) = said else { return };
        if matches!(answer, Ok(RenewalAnswer::Gone)) {
            lease.missing.push(node);
        }
        lease.tally.add(said);
        if lease.verdict.is_none()
            && let Some(verdict) = lease.tally.verdict()
        {
            if !(lease.is_extension && matches!(verdict, Verdict::Untold(_))) {
                self.leases.answer(id, round.sent, lease.ttl, &verdict);
            }
            if let Some(asked) = lease.asked.take() {
                // A caller that has stopped waiting is no error; what the servers did stays done.
                _ = asked.send(verdict.clone());
            }
            lease.verdict = Some(verdict);
        }
        if matches!(lease.verdict, Some(Verdict::Ours)) {
            let missing = std::mem::take(&mut lease.missing);
            drop(leases);
            missing.into_iter().for_each(|node| self.top_up(id, node));
        }
    }

    /// Extends a lease for its holder, once.
    pub(super) async fn extended(
        self: &Rc<Self>,
        id: LeaseId,
        ttl: Ttl,
    ) -> Result<(), ExtendError> {
        if let Some(reason) = self.leases.lost(id) {
            return Err(ExtendError::NotHeld(reason));
        }
        let renewal = self.leases.renewal(id, ttl);
        let renewal = renewal.ok_or(ExtendError::NotHeld(LossReason::Released))?;
        let (asked, verdict) = oneshot::channel();
        self.begin_round(vec![(id, renewal)], Some(asked));
        match verdict.await {
            Ok(Verdict::Untold(error)) => Err(ExtendError::Unconfirmed(error)),
            Ok(_) => {
                let lost = self.leases.lost(id);
                lost.map_or(Ok(()), |reason| Err(ExtendError::NotHeld(reason)))
            }
            // It was given back meanwhile.
            Err(_) => Err(ExtendError::NotHeld(LossReason::Released)),
        }
    }

    pub(super) async fn ask_renewals(
        &self,
        node: NodeId,
        batch: &[(LeaseId, Renewal)],
    ) -> Result<Vec<RenewalAnswer>, NodeError> {
        let shortest = batch.iter().map(|(_, renewal)| renewal.ttl).min();
        let limit = command_limit(shortest.map_or(Duration::MAX, Ttl::get));
        let renewals = batch.iter().map(|(_, renewal)| renewal.clone()).collect();
        match self.nodes.call(node, Op::Renew(renewals), limit).await? {
            Reply::Renewed(answers) => Ok(answers),
            _ => Err(NodeError::new(self.nodes.get(node).name(), NodeErrorKind::Protocol)),
        }
    }
}

/// Two keys each: a script over 256 keys holds up a server for about 0.4 ms.
const MOST_IN_A_BATCH: usize = 128;
