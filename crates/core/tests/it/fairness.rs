//! What the queue is for, checked in another way than by the model: no lock is handed past a live
//! waiter that came before.

use std::collections::BTreeSet;

use tenure_core::{Notification, Op, Reply};

use crate::steps::TOMBSTONES;

/// A lock before an op.
pub(crate) struct Before {
    /// Whether nobody held it.
    pub(crate) free: bool,
    /// Who waited, in order.
    pub(crate) queue: Vec<(u64, Vec<u8>)>,
    /// The channels that somebody listened to.
    pub(crate) open: BTreeSet<String>,
}

impl Before {
    /// The waiters that were passed over.
    pub(crate) fn passed_over(
        &self,
        op: &Op,
        reply: &Reply,
        notifications: &[Notification],
    ) -> Option<String> {
        let reply = match reply {
            Reply::Voted { reply, .. } => reply,
            reply => reply,
        };
        let (me, suspect) = match op {
            Op::Acquire { token, place, .. } => {
                let suspect = place.as_ref().and_then(|place| place.suspect.as_ref());
                (Some(token.as_str()), suspect.map(ToString::to_string))
            }
            _ => (None, None),
        };
        let left = match op {
            Op::Release { token, entries, .. } => {
                entries.iter().map(|entry| entry.member(token)).collect()
            }
            _ => Vec::new(),
        };
        // A caller comes without fail, and everybody else if somebody listens.
        let lives = |[token, channel]: [&str; 2]| {
            me == Some(token)
                || (self.open.contains(channel) && suspect.as_deref() != Some(channel))
        };
        let living = self.queue.iter().filter(|(_, member)| !left.contains(member));
        let mut living = living.filter_map(|(score, member)| {
            let words = entry(member).filter(|_| *score < TOMBSTONES)?;
            lives(words).then_some(words)
        });
        if let Some(Notification::Grant { to, token }) = notifications.first() {
            let first = living.next()?;
            return (first != [&**token, &to.to_string()]).then(|| first.join(" "));
        }
        // A caller that brings a ticket may come before all of them.
        let brings_none = matches!(op, Op::Acquire { place: None, .. });
        let taken = self.free && brings_none && matches!(reply, Reply::Granted(_));
        let first = living.next().filter(|_| taken)?;
        (Some(first[0]) != me).then(|| first.join(" "))
    }
}

/// Token and channel of an entry; none of what no client of ours writes.
fn entry(member: &[u8]) -> Option<[&str; 2]> {
    let text = str::from_utf8(member).ok()?;
    let [token, channel, grant_ttl] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let graphic = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_graphic());
    let digits = grant_ttl.bytes().all(|b| b.is_ascii_digit()) && !grant_ttl.starts_with('0');
    let short = (1..16).contains(&grant_ttl.len());
    (graphic(token) && graphic(channel) && digits && short).then_some([token, channel])
}
