//! Renewing leases, in the background and for their holders.

use std::{cell::RefCell, collections::HashMap, future::Future, pin::Pin, rc::Rc};

use tenure_core::{LossReason, NodeId, Op, RenewRequest, RenewalAnswer, Reply, Timestamp, Ttl};
use tokio::sync::oneshot;

use super::{
    lease::{LeaseId, Leased},
    limits::{MAX_LIMIT, op_limit},
    majority::{KeyState, MajorityCount, QuorumResult},
    state::State,
};
use crate::{
    clock,
    error::{ConfigError, ExtendError, NodeError, NodeErrorKind, RevalidateError},
    task,
};

/// Leases to renew on one node, in one call.
type Batch = Vec<(LeaseId, RenewRequest)>;

/// Renewals of some leases on all nodes, and what each lease's come to.
struct Round {
    sent: Timestamp,
    leases: RefCell<HashMap<LeaseId, OneLease>>,
}

struct OneLease {
    ttl: Ttl,
    majority: MajorityCount,
    result: Option<QuorumResult>,
    /// Nodes that have no key, and could.
    missing: Vec<NodeId>,
    purpose: Purpose,
    /// Its holder waits for the result.
    asked: Option<oneshot::Sender<QuorumResult>>,
}

/// Why the TTL is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To hold the lease on, in the background.
    Renewal,
    /// The holder wants it longer, once.
    Extension,
    /// The holder wants to know whether the key was there all the time.
    Proof,
}

impl State {
    /// Renews and reports losses, for as long as the engine runs.
    pub(super) async fn run_renewals(self: Rc<Self>) {
        loop {
            tokio::select! {
                () = self.timers.sleep_until(self.leases.next()) => {}
                () = self.leases.sooner() => continue,
            }
            let mut renewals = self.leases.take_due(clock::now());
            let is_several = self.nodes.sole().is_none();
            // Servers are asked for those together that may be held equally long.
            renewals.sort_by_key(|(id, _)| self.leases.max_ttl(*id));
            let watched = renewals.iter().filter(|_| is_several).map(|(id, _)| *id).collect();
            while let Some((first, _)) = renewals.first() {
                let longest = self.leases.max_ttl(*first);
                let goes_along =
                    |(id, _): &&(LeaseId, RenewRequest)| self.leases.max_ttl(*id) == longest;
                let batch = renewals.iter().take(MAX_IN_A_BATCH).take_while(goes_along);
                let rest = renewals.split_off(batch.count());
                let batch = std::mem::replace(&mut renewals, rest);
                self.begin_round(batch, Purpose::Renewal, None);
                // Others' ops go between the batches.
                tokio::task::yield_now().await;
            }
            self.watch_clocks(watched);
        }
    }

    /// Looks, beside a renewal of these leases, whether the nodes would still vote on their locks:
    /// so a clock step is logged while it matters, and not when the next client acquires.
    fn watch_clocks(self: &Rc<Self>, leases: Vec<LeaseId>) {
        let leases = Rc::new(leases);
        for (node, _) in self.nodes.iter().filter(|_| !leases.is_empty()) {
            let clock = self.nodes.call(node, Op::Clock, 2 * MAX_LIMIT);
            let (state, leases) = (Rc::clone(self), Rc::clone(&leases));
            task::spawn(async move {
                // Given up before its time limit: that the node hangs is for the renewal to find.
                let end = clock::now() + MAX_LIMIT;
                tokio::select! {
                    _ = clock => {}
                    () = state.timers.sleep_until(end) => return,
                }
                // Its reply was taken on the way, and what matters is logged.
                for max_ttl in leases.iter().filter_map(|id| state.leases.max_ttl(*id)) {
                    _ = state.nodes.judge(node, max_ttl);
                }
            });
        }
    }

    /// Renews a batch on every node. The answer of none waits for another's.
    fn begin_round(
        self: &Rc<Self>,
        batch: Batch,
        purpose: Purpose,
        mut asked: Option<oneshot::Sender<QuorumResult>>,
    ) {
        let leases = batch.iter().map(|(id, renewal)| {
            let lease = OneLease {
                ttl: renewal.ttl,
                majority: MajorityCount::new(self.nodes.quorum()),
                result: None,
                missing: Vec::new(),
                purpose,
                asked: asked.take(),
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
                        self.renewed(&round, *id, node, &Err(error.clone()), None);
                    }
                }
                Ok((answers, ineligible)) => {
                    for ((id, _), answer) in batch.iter().zip(answers) {
                        let answer = match answer {
                            RenewalAnswer::Refused(words) => {
                                Err(self.nodes.get(node).refusal(&words))
                            }
                            answer => Ok(answer),
                        };
                        self.renewed(&round, *id, node, &answer, ineligible.as_ref());
                    }
                }
            }
        })
    }

    /// Takes one node's answer for one lease. A key that is there on a node that may have forgotten
    /// another lease counts for nothing yet.
    fn renewed(
        self: &Rc<Self>,
        round: &Round,
        id: LeaseId,
        node: NodeId,
        answer: &Result<RenewalAnswer, NodeError>,
        ineligible: Option<&NodeError>,
    ) {
        let mut leases = round.leases.borrow_mut();
        let Some(lease) = leases.get_mut(&id) else { return };
        let state = match (answer, lease.purpose) {
            (Ok(_), _) | (Err(_), Purpose::Renewal) => self.leases.counted(id, node, answer),
            // How long a caller waits for its reply is the caller's affair.
            (Err(error), _) => Some(KeyState::Indeterminate(error.clone())),
        };
        let Some(mut state) = state else { return };
        if let (Ok(RenewalAnswer::Renewed), Some(ineligible)) = (answer, ineligible) {
            state = KeyState::Indeterminate(ineligible.clone());
        }
        if matches!(answer, Ok(RenewalAnswer::Gone)) {
            lease.missing.push(node);
        }
        lease.majority.add(state);
        if lease.result.is_none()
            && let Some(result) = lease.majority.result()
        {
            match (&result, lease.purpose) {
                (QuorumResult::Indeterminate(_), Purpose::Extension | Purpose::Proof) => {}
                (QuorumResult::Ours, Purpose::Proof) => self.leases.prove(id, round.sent),
                (result, purpose) => {
                    let extended = (purpose == Purpose::Extension).then_some(lease.ttl);
                    self.leases.answer(id, round.sent, extended, result);
                }
            }
            if let Some(asked) = lease.asked.take() {
                // A caller that has stopped waiting is no error; what the servers did stays done.
                _ = asked.send(result.clone());
            }
            lease.result = Some(result);
        }
        if matches!(lease.result, Some(QuorumResult::Ours)) {
            let missing = std::mem::take(&mut lease.missing);
            drop(leases);
            missing.into_iter().for_each(|node| self.repair(id, node));
        }
    }

    /// Extends a lease for its holder, once.
    pub(super) async fn extended(
        self: &Rc<Self>,
        (id, cell): &Leased,
        ttl: Ttl,
    ) -> Result<(), ExtendError> {
        let id = *id;
        let not_held = |reason| ExtendError::NotHeld(cell.lost_by(reason));
        if let Some(reason) = self.leases.lost(id) {
            return Err(not_held(reason));
        }
        let renewal = self.leases.renewal(id, ttl);
        let renewal = renewal.ok_or_else(|| not_held(LossReason::Released))?;
        let longest = self.leases.max_ttl(id).filter(|_| self.nodes.sole().is_none());
        if longest.is_some_and(|longest| ttl > longest) {
            let error = ConfigError::Setting {
                setting: "ttl",
                value: format!("{:?}", ttl.get()),
                bound: "where several servers vote it must be at most the lock's max_ttl",
            };
            return Err(ExtendError::Config { key: cell.key().clone(), error });
        }
        match self.ask_for(id, renewal, Purpose::Extension).await {
            Some(QuorumResult::Indeterminate(errors)) => {
                Err(ExtendError::Unconfirmed(errors.of_lock(cell.key())))
            }
            Some(_) => self.leases.lost(id).map_or(Ok(()), |reason| Err(not_held(reason))),
            None => Err(not_held(LossReason::Released)),
        }
    }

    /// Has the nodes prove that a lease's key was there all the time.
    pub(super) async fn proved(
        self: &Rc<Self>,
        (id, cell): &Leased,
    ) -> Result<(), RevalidateError> {
        let id = *id;
        let not_held = |reason| Err(RevalidateError::NotHeld(cell.lost_by(reason)));
        if let Some(reason) = self.leases.final_loss(id) {
            return not_held(reason);
        }
        let renewal = self.leases.ttl(id).and_then(|ttl| self.leases.renewal(id, ttl));
        let Some(renewal) = renewal else { return not_held(LossReason::Released) };
        let had_run_out = self.leases.lost(id).is_some();
        match self.ask_for(id, renewal, Purpose::Proof).await {
            Some(QuorumResult::Indeterminate(errors)) => {
                Err(RevalidateError::Unconfirmed(errors.of_lock(cell.key())))
            }
            Some(QuorumResult::Gone | QuorumResult::GivenUp) => not_held(LossReason::Gone),
            Some(QuorumResult::Other(holder)) => not_held(LossReason::Taken { holder }),
            Some(QuorumResult::Ours) => {
                if had_run_out {
                    self.watch_later(id);
                }
                self.leases.lost(id).map_or(Ok(()), not_held)
            }
            None => not_held(LossReason::Released),
        }
    }

    /// Asks the nodes for a lease's holder; `None` when it is released meanwhile.
    async fn ask_for(
        self: &Rc<Self>,
        id: LeaseId,
        renewal: RenewRequest,
        purpose: Purpose,
    ) -> Option<QuorumResult> {
        let (asked, result) = oneshot::channel();
        self.begin_round(vec![(id, renewal)], purpose, Some(asked));
        result.await.ok()
    }

    pub(super) async fn ask_renewals(
        &self,
        node: NodeId,
        batch: &[(LeaseId, RenewRequest)],
    ) -> Result<(Vec<RenewalAnswer>, Option<NodeError>), NodeError> {
        let shortest = batch.iter().map(|(_, renewal)| renewal.ttl).min();
        let limit = shortest.map_or(MAX_LIMIT, |ttl| op_limit(&self.nodes, node, ttl));
        let renewals = batch.iter().map(|(_, renewal)| renewal.clone()).collect();
        let longest = batch.iter().filter_map(|(id, _)| self.leases.max_ttl(*id)).max();
        let longest = longest.or_else(|| batch.iter().map(|(_, renewal)| renewal.ttl).max());
        let call = match longest {
            Some(longest) => self.nodes.call_checked(node, Op::Renew(renewals), longest, limit),
            None => return Ok((Vec::new(), None)),
        };
        let answer = call.await?;
        match answer.reply {
            Reply::Renewed(answers) => Ok((answers, answer.ineligible)),
            _ => Err(NodeError::new(self.nodes.get(node).name(), NodeErrorKind::Protocol)),
        }
    }
}

/// Two keys each: a script over 256 keys holds up a server for about 0.4 ms.
const MAX_IN_A_BATCH: usize = 128;
