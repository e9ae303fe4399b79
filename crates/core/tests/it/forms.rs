//! What servers say in the sequences, and proof that they say all of it often.

use std::collections::BTreeMap;

use tenure_core::{
    Closure, Confirmation, Eligibility, FenceFault, Held, Holder, Inspection, MarkerCause, Next,
    Notification, Op, PollAnswer, Release, RenewalAnswer, Reply, TtlLeft,
};
use tenure_testkit::ServerKind;

/// How often each form of reply and of message came.
#[derive(Debug, Default)]
pub(crate) struct Forms(BTreeMap<&'static str, usize>);

impl Forms {
    /// Counts a reply, and the messages that came with it.
    pub(crate) fn count(&mut self, op: &Op, reply: &Reply, notifications: &[Notification]) {
        for notification in notifications {
            self.add(match notification {
                Notification::Grant { .. } => "woken: granted",
                Notification::SuccessorWatch { .. } => "woken: becomes the successor watch",
                Notification::Free { .. } => "woken: it is free",
            });
        }
        match reply {
            Reply::Voted { reply, last_number, .. } => {
                self.add(if last_number.is_some() { "voted" } else { "voted: no number" });
                self.count(op, reply, &[]);
            }
            Reply::Confirmed { answer, .. } => self.add(match answer {
                Confirmation::Ours(_) => "confirmed",
                Confirmation::Gone => "not confirmed: gone",
                Confirmation::Other(_) => "not confirmed: another's",
                // Rare here: the tables have it.
                Confirmation::Faulty(_) => "not confirmed: fault",
            }),
            Reply::Clock { .. } => self.add("clock"),
            Reply::Checked { eligibility, reply } => {
                self.add(match eligibility {
                    Eligibility::Eligible => "eligible",
                    Eligibility::Opened => "opened by hand",
                    Eligibility::Closed(Closure::Forgetful(MarkerCause::New, _)) => "closed: new",
                    Eligibility::Closed(Closure::Forgetful(..)) => "closed: changed",
                    Eligibility::Closed(_) => "closed: unusable",
                });
                self.count(op.unchecked(), reply, &[]);
            }
            Reply::Granted(_) => self.add("granted"),
            Reply::Held(held) => self.held(held),
            Reply::Queued { held, position, .. } => {
                self.held(held);
                self.add(if *position == 0 { "queued: the first" } else { "queued: behind" });
            }
            Reply::Cancelled => self.add("cancelled"),
            Reply::More => self.add(match op {
                Op::Acquire { place: None, .. } => "more, to one that does not wait",
                _ => "more",
            }),
            Reply::Free => self.add("not resumed: free"),
            Reply::Faulty(fault) => self.add(match fault {
                FenceFault::Type => "fault: type",
                FenceFault::Value => "fault: value",
                FenceFault::Queue => "fault: queue",
                _ => "fault: exhausted",
            }),
            Reply::Renewed(answers) => answers.iter().for_each(|answer| {
                self.add(match answer {
                    RenewalAnswer::Renewed => "renewed",
                    RenewalAnswer::Gone => "gone",
                    RenewalAnswer::Other(_) => "not renewed: another's",
                    RenewalAnswer::Refused(_) => "refused",
                });
            }),
            Reply::Polled(answers) => answers.iter().for_each(|answer| match answer {
                PollAnswer::Go => self.add("looked: go"),
                PollAnswer::Waits { held, position } => {
                    self.held(held);
                    let waits = ["looked: waits, the first", "looked: waits behind"];
                    self.add(waits[usize::from(*position > 0)]);
                }
            }),
            Reply::Released { release, next } => self.add(released(release, *next)),
            Reply::Inspected(Inspection { held, last_number, waiters, .. }) => {
                self.add(match (held, last_number) {
                    (None, _) => "inspected: free",
                    (_, None) => "inspected: no number",
                    _ => "inspected",
                });
                if !waiters.is_empty() {
                    self.add("inspected: waiters");
                }
            }
        }
    }

    fn held(&mut self, Held { holder, ttl_left }: &Held) {
        self.add(match holder {
            Holder::Tenure(_) => "held",
            Holder::ForeignType(_) => "held by a type",
            _ => "held by another library",
        });
        if *ttl_left == TtlLeft::Never {
            self.add("held for ever");
        }
    }

    fn add(&mut self, form: &'static str) {
        *self.0.entry(form).or_default() += 1;
    }

    /// Proof that the sequences go where it matters: every form came, and came often.
    pub(crate) fn assert_often(&self, kind: ServerKind) {
        for form in FORMS {
            let seen = self.0.get(form).copied().unwrap_or_default();
            assert!(seen > 20, "{kind}: only {seen} times {form:?}: {self:#?}");
        }
    }
}

fn released(release: &Release, next: Next) -> &'static str {
    match (release, next) {
        (Release::Released(_), Next::Nobody) => "released: nobody waits",
        (Release::Released(_), Next::Waiter) => "released: handed over",
        (Release::Released(_), Next::Yielded) => "released: yielded",
        (Release::Released(_), Next::More) => "released: more",
        (Release::Free, Next::Nobody) => "already free: nobody waits",
        (Release::Free, Next::Waiter) => "already free: handed over",
        (Release::Free, Next::Yielded) => "already free: yielded",
        (Release::Free, Next::More) => "already free: more",
        (Release::Other(_), _) => "not released: another's",
        (Release::AlreadyReleased, Next::Nobody) => "already released: nobody waits",
        // Rare here: the tables have it.
        (Release::AlreadyReleased, Next::Waiter) => "already released: handed over",
        (Release::AlreadyReleased, Next::Yielded) => "already released: yielded",
        (Release::AlreadyReleased, Next::More) => "already released: more",
    }
}

/// All that a server says in these sequences.
const FORMS: [&str; 48] = [
    "eligible",
    "opened by hand",
    "closed: new",
    "closed: changed",
    "closed: unusable",
    "woken: granted",
    "woken: becomes the successor watch",
    "woken: it is free",
    "voted",
    "voted: no number",
    "confirmed",
    "not confirmed: gone",
    "not confirmed: another's",
    "clock",
    "granted",
    "held",
    "held by a type",
    "held by another library",
    "held for ever",
    "queued: the first",
    "queued: behind",
    "cancelled",
    "more",
    "more, to one that does not wait",
    "not resumed: free",
    "fault: type",
    "fault: value",
    "fault: exhausted",
    "fault: queue",
    "renewed",
    "gone",
    "not renewed: another's",
    "released: nobody waits",
    "released: handed over",
    "released: yielded",
    "released: more",
    "already free: nobody waits",
    "already free: handed over",
    "already free: more",
    "not released: another's",
    "already released: nobody waits",
    "inspected: free",
    "inspected: no number",
    "inspected",
    "inspected: waiters",
    "looked: go",
    "looked: waits, the first",
    "looked: waits behind",
];
