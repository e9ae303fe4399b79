//! Tickets and fencing numbers, made small: only their order matters to anybody.
//!
//! A new ticket, and a new number, is larger than all there are, since a server's clock moves
//! between two ops (`max(clock, top + 1)`). So what is kept of them is their rank among those that
//! anything still remembers, and the server's clock stands just above all ranks.

use crate::{
    message::{Ask, Content},
    state::QueueState,
};

/// A ticket or a number, by its place among all there are.
pub(crate) type Rank = u16;

/// Where the server's clock stands for the next op: above every rank.
pub(crate) const FRESH: Rank = 256;

impl QueueState {
    /// Renumbers tickets and fencing numbers, from 0 on, each in its own order.
    pub(crate) fn rank(&mut self) {
        for tickets in [true, false] {
            let mut all = [0_u64; 5];
            let mut fresh = 0;
            self.each_rank(tickets, &mut |rank| {
                all[usize::from(*rank >> 6)] |= 1 << (*rank & 63);
                fresh = fresh.max(*rank);
            });
            let below = |rank: Rank| {
                let (word, bit) = (usize::from(rank >> 6), rank & 63);
                let whole: u32 = all[..word].iter().map(|bits| bits.count_ones()).sum();
                whole + (all[word] & ((1 << bit) - 1)).count_ones()
            };
            if fresh == 0 || below(fresh) == u32::from(fresh) {
                continue;
            }
            self.each_rank(tickets, &mut |rank| {
                *rank = Rank::try_from(below(*rank)).unwrap_or(Rank::MAX);
            });
        }
    }

    fn each_rank(&mut self, tickets: bool, visit: &mut impl FnMut(&mut Rank)) {
        let Self { server, clients, faults: _, highest } = self;
        if tickets {
            server.queue.iter_mut().for_each(|entry| visit(&mut entry.ticket));
        } else {
            server.number.iter_mut().for_each(&mut *visit);
            highest.iter_mut().for_each(|(number, _)| visit(number));
        }
        for client in clients {
            for attempt in &mut client.attempts {
                if tickets {
                    attempt.ticket.iter_mut().for_each(&mut *visit);
                    attempt.joined.iter_mut().for_each(&mut *visit);
                } else {
                    let numbers = attempt.belief.iter_mut().filter_map(|b| b.number.as_mut());
                    numbers.for_each(&mut *visit);
                }
            }
            for request in &mut client.requests {
                if let Ask::Acquire { ticket: Some(ticket), .. } = &mut request.ask
                    && tickets
                {
                    visit(ticket);
                }
            }
            for message in &mut client.inbox {
                match &mut message.says {
                    Content::Queued { ticket, .. } if tickets => visit(ticket),
                    Content::Granted { number, .. } if !tickets => visit(number),
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        state::{QueueEntry, Who},
    };

    #[test]
    fn only_the_order_remains() {
        let mut state = QueueState::new(&Config::default());
        let (one, two) = (Who { client: 0, attempt: 0 }, Who { client: 1, attempt: 0 });
        state.server.queue.push(QueueEntry { ticket: 9, who: one, epoch: 0 });
        state.server.queue.push(QueueEntry { ticket: FRESH, who: two, epoch: 0 });
        state.attempt_mut(one).ticket = Some(4);
        state.server.number = Some(FRESH);
        state.rank();
        let tickets: Vec<_> = state.server.queue.iter().map(|entry| entry.ticket).collect();
        assert_eq!((tickets, state.attempt(one).ticket), (vec![1, 2], Some(0)));
        assert_eq!(state.server.number, Some(0), "numbers are ranked by themselves");
    }
}
