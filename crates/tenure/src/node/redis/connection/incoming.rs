//! What a server sends over a connection, and whom it is for.

use tenure_core::script::{self, Answer};

use super::{
    super::{
        fault,
        pubsub_channel::ChannelMessage,
        resp::Incoming,
        subscriptions::{self, Message},
        tracking::{self, Changed},
    },
    Connection, Expected, NodeError, Notifications, OldConnections, Request, Tracking,
    outgoing::{Form, RefusedForm},
};
use crate::clock;

impl Connection {
    /// Hands one message of the server to whom it is for.
    pub(super) fn handle(
        &mut self,
        incoming: Incoming,
        old: &mut OldConnections,
    ) -> Result<(), NodeError> {
        if let Incoming::Push(fields) = &incoming {
            self.receive(fields);
            return Ok(());
        }
        self.shared.time_outs.set(0);
        if !self.greeting.is_over() {
            self.greeting.handle(incoming, old, &mut self.out)?;
            if self.greeting.is_over() {
                self.greeted = Some(clock::now());
                self.shared.set_trouble(None);
                self.shared.meet(self.greeting.server_info());
                self.shared.cut_off.set(self.greeting.has_cut_off());
            }
            return Ok(());
        }
        match self.in_flight.pop() {
            None => Err(self.protocol("a reply to no request")),
            Some(Expected::Op { request, in_full, proves_rights, sent }) => {
                if self.pubsub.is_mute()
                    && self.shared.notifications.get() == Notifications::Assumed
                {
                    self.mark_unavailable();
                }
                self.shared.measure(clock::now().since(sent));
                self.has_rights |= proves_rights && matches!(incoming, Incoming::Reply(_));
                self.reply(request, in_full, incoming)
            }
            Some(Expected::Subscribed) => {
                self.mark_unavailable();
                Ok(())
            }
            Some(Expected::Proof) => {
                match incoming {
                    Incoming::Reply(answer) if self.pubsub.is_counted(&answer) => {
                        self.mark_verified();
                    }
                    _ => self.mark_unavailable(),
                }
                Ok(())
            }
            Some(Expected::Tracking) => match incoming {
                Incoming::Error(_) => {
                    self.tracking = Tracking::Refused;
                    self.shared.tracks.set(false);
                    self.shared.watches.give_up();
                    Ok(())
                }
                incoming => self.expect_ok(&incoming),
            },
            // Refused: there are no notifications, and waiters poll.
            Some(Expected::Listening(_)) => match incoming {
                Incoming::Error(_) => Ok(()),
                _ => Err(self.protocol("a reply to a subscription")),
            },
            Some(Expected::Caching) => match incoming {
                Incoming::Error(_) => Ok(()),
                incoming => self.expect_ok(&incoming),
            },
            Some(Expected::Watched(key)) => match incoming {
                Incoming::Error(_) => Ok(()),
                Incoming::Reply(answer @ Answer::Bytes(_)) => {
                    // Without a key it is empty.
                    let value = tracking::bytes(&answer).filter(|value| !value.is_empty());
                    self.shared.watches.seen(&key, value);
                    Ok(())
                }
                _ => Err(self.protocol("a reply of another kind than a key's value")),
            },
        }
    }

    fn expect_ok(&self, incoming: &Incoming) -> Result<(), NodeError> {
        match incoming {
            Incoming::Reply(Answer::Bytes(word)) if word == b"OK" => Ok(()),
            _ => Err(self.protocol("a reply of another kind than OK")),
        }
    }

    fn receive(&mut self, fields: &[Answer]) {
        match tracking::changed(fields) {
            // A renewal changes a key, too: the value there shows more, and is tracked again.
            Some(Changed::Keys(keys)) => {
                let watched = keys.into_iter().filter_map(|key| self.shared.watches.changed(key));
                self.shared.to_track.borrow_mut().extend(watched);
            }
            Some(Changed::Everything) => {
                self.shared.to_track.replace(self.shared.watches.keys().into_iter().collect());
            }
            None => {}
        }
        match subscriptions::read(fields) {
            Some(Message::Released(channel)) => self.shared.waiters.listeners.notify(channel),
            Some(Message::Settled(channel)) => self.in_flight.settle(channel),
            None => {}
        }
        match self.pubsub.receive(fields) {
            ChannelMessage::Own => self.mark_verified(),
            ChannelMessage::Notification(wake) => self.shared.waiters.deliver(wake),
            ChannelMessage::Subscribed => {
                if matches!(self.in_flight.next(), Some(Expected::Subscribed)) {
                    self.in_flight.pop();
                }
            }
            ChannelMessage::Noise => {}
        }
    }

    /// It is verified that the server notifies waiters of their turn, when both halves are here.
    fn mark_verified(&self) {
        if self.pubsub.is_verified() && self.shared.notifications.get() == Notifications::Assumed {
            self.shared.notifications.set(Notifications::Verified);
        }
    }

    /// The server does not notify waiters of their turn: from now on they poll.
    fn mark_unavailable(&self) {
        self.shared.notifications.set(Notifications::Unavailable);
        self.shared.waiters.wake_all();
    }

    fn reply(
        &mut self,
        request: Request,
        in_full: bool,
        incoming: Incoming,
    ) -> Result<(), NodeError> {
        let form = if in_full { Form::Text } else { Form::Sha1 };
        match incoming {
            Incoming::Error(words) if form == Form::Sha1 && fault::is_noscript(&words) => {
                match self.refused.take() {
                    None => self.send_again(request),
                    // It cannot be sent in full either, and that is what is to be known.
                    Some(refused) => {
                        let error = fault::of_reply(
                            &self.shared.name,
                            &self.shared.address,
                            &refused.words,
                        );
                        request.answer(Err(error));
                    }
                }
                Ok(())
            }
            // The other way will do; where that is refused too, the next op begins again.
            Incoming::Error(words)
                if fault::refuses(&words, form.command()) && self.refused.take().is_none() =>
            {
                self.refused = Some(RefusedForm { form, words });
                self.send_again(request);
                Ok(())
            }
            Incoming::Error(words) => {
                let error = self.shared.refusal(&words);
                let over = fault::wants_reconnect(error.kind()).then(|| error.clone());
                request.answer(Err(error));
                over.map_or(Ok(()), Err)
            }
            Incoming::Reply(answer) => match script::read(&request.op, request.number, answer) {
                Ok(reply) => {
                    request.answer(Ok(reply));
                    Ok(())
                }
                Err(misread) => {
                    let error = self.protocol(misread);
                    request.answer(Err(error.clone().maybe_applied()));
                    Err(error)
                }
            },
            Incoming::Map(_) | Incoming::Push(_) => {
                let error = self.protocol("a reply of another kind than a script's");
                request.answer(Err(error.clone().maybe_applied()));
                Err(error)
            }
        }
    }

    /// The server has forgotten its scripts. The op was not applied; one that nobody waits for any
    /// more is dropped, and so is one whose undoing is already on its way: it would come after it.
    fn send_again(&mut self, request: Request) {
        self.sent_scripts.clear();
        let mut queue = self.shared.queue.borrow_mut();
        let is_undone =
            self.in_flight.requests().chain(&*queue).any(|later| later.undoes(&request));
        if !request.is_pointless() && !is_undone {
            queue.push_back(request);
        }
    }
}
