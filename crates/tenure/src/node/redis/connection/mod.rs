//! One connection: requests out, replies in, in order.

mod incoming;
mod outgoing;

use std::{
    future::{Future as _, poll_fn},
    io,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tenure_core::Timestamp;
use tokio::io::ReadBuf;

use self::outgoing::RefusedForm;
use super::{
    Notifications, Request, Shared,
    greeting::{Greeting, OldConnections},
    in_flight::{Expected, InFlight},
    pubsub_channel::PubSubChannel,
    resp::{self, Decoder},
    stream::Stream,
    subscriptions::Subscriptions,
    tracking::Tracking,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind, is_shortage},
};

/// An open connection with its unanswered requests.
pub(super) struct Connection {
    shared: Rc<Shared>,
    stream: Stream,
    greeting: Greeting,
    /// When the greeting was over.
    greeted: Option<Timestamp>,
    out: BytesMut,
    input: BytesMut,
    decoder: Decoder,
    chunk: Box<[u8]>,
    pubsub: PubSubChannel,
    in_flight: InFlight,
    /// Writes until the next busy poll: see [`Connection::busy_poll`].
    writes_until_busy_poll: u32,
    /// What that becomes at the next poll without success.
    busy_poll_backoff: u32,
    tracking: Tracking,
    subscriptions: Subscriptions,
    /// Scripts that this server has been sent on this connection, by their SHA-1.
    sent_scripts: Vec<&'static str>,
    /// The way to send them that is refused here.
    refused: Option<RefusedForm>,
    /// The user may run what later steps of a lease need.
    has_rights: bool,
}

impl Connection {
    /// Connects, and queues the first commands.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached within [`CONNECT_LIMIT`].
    pub(super) async fn open(shared: &Rc<Shared>, old: &OldConnections) -> Result<Self, NodeError> {
        let limit = shared.timers.sleep_until(clock::now() + CONNECT_LIMIT);
        let stream = tokio::select! {
            biased;
            stream = Stream::connect(&shared.address.place) => stream,
            () = limit => Err(io::ErrorKind::TimedOut.into()),
        };
        let stream = stream.map_err(|error| {
            let kind = match is_shortage(&error) {
                true => NodeErrorKind::NoResources,
                false => NodeErrorKind::Unreachable,
            };
            shared.error(kind).with_source(error)
        })?;
        shared.notifications.set(Notifications::Assumed);
        shared.to_track.replace(shared.watches.keys().into_iter().collect());
        shared.to_listen.replace(shared.waiters.listeners.channels());
        shared.tracks.set(true);
        let mut out = BytesMut::new();
        let greeting = Greeting::begin(
            &shared.name,
            &shared.address,
            old,
            shared.accepts_replica.get(),
            &mut out,
        );
        Ok(Self {
            shared: Rc::clone(shared),
            stream,
            greeting,
            greeted: None,
            out,
            input: BytesMut::new(),
            decoder: Decoder::default(),
            chunk: vec![0; CHUNK].into(),
            pubsub: PubSubChannel::new(),
            in_flight: InFlight::default(),
            writes_until_busy_poll: 0,
            busy_poll_backoff: MIN_BACKOFF,
            tracking: Tracking::default(),
            subscriptions: Subscriptions::default(),
            sent_scripts: Vec::new(),
            refused: None,
            has_rights: false,
        })
    }

    /// Serves requests until the connection ends; then everything unanswered is unknown.
    ///
    /// Returns why it ended, and how long it had lasted when the server had greeted us.
    pub(super) async fn serve(mut self, old: &mut OldConnections) -> (NodeError, Option<Duration>) {
        let error = self.until_over(old).await;
        if !self.in_flight.is_empty() {
            old.add(self.greeting.peer());
            self.shared.cut_off.set(false);
        }
        while let Some(expected) = self.in_flight.pop() {
            if let Expected::Op { request, .. } = expected {
                request.answer(Err(error.clone().maybe_applied()));
            }
        }
        self.stream.abort();
        (error, self.greeted.map(|greeted| clock::now().since(greeted)))
    }

    /// Moves bytes both ways until the connection is over; returns why it is.
    async fn until_over(&mut self, old: &mut OldConnections) -> NodeError {
        let mut limit = pin!(self.shared.timers.sleep_until(clock::now() + CONNECT_LIMIT));
        loop {
            let turn = poll_fn(|cx| match self.poll_turn(cx, old) {
                Poll::Ready(TurnEnd::Over(error)) => Poll::Ready(TurnEnd::Over(error)),
                _ if !self.greeting.is_over() && limit.as_mut().poll(cx).is_ready() => {
                    Poll::Ready(TurnEnd::Over(self.shared.error(NodeErrorKind::TimedOut)))
                }
                turn => turn,
            });
            match turn.await {
                TurnEnd::Over(error) => return error,
                // Timers first, whatever else the server has sent.
                TurnEnd::Full => tokio::task::yield_now().await,
            }
        }
    }

    /// Moves bytes both ways until the socket has nothing left for now, or for at most one
    /// turn.
    fn poll_turn(&mut self, cx: &mut Context<'_>, old: &mut OldConnections) -> Poll<TurnEnd> {
        self.shared.task.replace(Some(cx.waker().clone()));
        let mut wrote_last = false;
        let mut left = MAX_READ;
        loop {
            if self.shared.hang_up.take() {
                return Poll::Ready(TurnEnd::Over(self.shared.error(NodeErrorKind::TimedOut)));
            }
            // First what has come: ops are not put on a connection that is known to be over.
            let moved = self.poll_replies(cx, old, &mut left).and_then(|read| {
                self.take_requests();
                match self.poll_flush(cx) {
                    Ok(wrote) => Ok((read, wrote)),
                    // A server that has closed the connection may have said why.
                    Err(error) => self.poll_replies(cx, old, &mut left).and(Err(error)),
                }
            });
            match moved {
                Ok(_) if left == 0 => return Poll::Ready(TurnEnd::Full),
                Ok((false, false)) if !(wrote_last && self.busy_poll()) => {
                    return Poll::Pending;
                }
                Ok((_, wrote)) => wrote_last = wrote,
                Err(error) => return Poll::Ready(TurnEnd::Over(error)),
            }
        }
    }

    /// Looks for the reply to what was just written, for a moment, before the thread goes to sleep.
    ///
    /// A server on the same host answers within that moment, and being woken would cost half as
    /// much again. It yields at each poll, so another process, the server for one, may run on this
    /// processor. When nothing comes, some writes skip it: twice as many each time, half as many
    /// after something came. So a distant server is soon left alone, and a moment in which
    /// others kept this thread from looking changes little. One of several nodes is never listened
    /// to: the requests to the others would be written that much later. Returns whether anything
    /// came.
    fn busy_poll(&mut self) -> bool {
        if !self.shared.is_sole || self.in_flight.is_empty() || self.writes_until_busy_poll > 0 {
            self.writes_until_busy_poll = self.writes_until_busy_poll.saturating_sub(1);
            return false;
        }
        let until = clock::now() + LISTEN;
        while clock::now() < until {
            // An end or an error is left to the ordinary way, which sees it again.
            if let Ok(count) = self.stream.read_now(&mut self.chunk)
                && count > 0
            {
                self.input.extend_from_slice(self.chunk.get(..count).unwrap_or_default());
                self.busy_poll_backoff = (self.busy_poll_backoff / 2).max(MIN_BACKOFF);
                return true;
            }
            std::thread::yield_now();
        }
        self.writes_until_busy_poll = self.busy_poll_backoff;
        self.busy_poll_backoff = (2 * self.busy_poll_backoff).min(MAX_BACKOFF);
        false
    }

    /// Whether any byte was written. Records whether the connection may be closed.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<bool, NodeError> {
        let mut wrote = false;
        while !self.out.is_empty() {
            match self.stream.poll_write(cx, &self.out) {
                Poll::Ready(Ok(count)) => {
                    self.out.advance(count);
                    wrote = true;
                }
                Poll::Ready(Err(error)) => return Err(self.disconnected(error)),
                Poll::Pending => break,
            }
        }
        self.shared.unsafe_to_close.set(!self.out.is_empty() || !self.in_flight.may_be_closed());
        Ok(wrote)
    }

    /// Whether any byte was read, of at most so many. Hands out the replies that are complete, the
    /// last words of a server that closed the connection too.
    fn poll_replies(
        &mut self,
        cx: &mut Context<'_>,
        old: &mut OldConnections,
        left: &mut usize,
    ) -> Result<bool, NodeError> {
        let mut read = false;
        loop {
            while let Some(incoming) =
                self.decoder.next(&mut self.input).map_err(|error| self.protocol(error))?
            {
                self.handle(incoming, old)?;
            }
            if *left == 0 {
                return Ok(read);
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => {
                    return Err(self.disconnected(io::ErrorKind::UnexpectedEof.into()));
                }
                Poll::Ready(Ok(count)) => *left = left.saturating_sub(count),
                Poll::Ready(Err(error)) => return Err(self.disconnected(error)),
                Poll::Pending => return Ok(read),
            }
            read = true;
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.chunk);
        ready!(self.stream.poll_read(cx, &mut buffer))?;
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn disconnected(&self, error: io::Error) -> NodeError {
        self.shared.error(NodeErrorKind::Disconnected).with_source(error)
    }

    fn protocol(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> NodeError {
        let error = self.shared.error(NodeErrorKind::Protocol).with_source(error);
        if self.greeting.is_over() { error.out_of_step() } else { error }
    }
}

/// Enough for a server in another continent and one lost packet, TLS included; once for the
/// connection, and once for the answers to its first commands.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Two round trips on one host, where one takes 20 to 50 µs.
const LISTEN: Duration = Duration::from_micros(100);

/// Writes without polling after one poll without success.
const MIN_BACKOFF: u32 = 1;

/// Polling without success then costs less than 1 µs per write.
const MAX_BACKOFF: u32 = 256;

/// A reply to a full batch of renewals fits.
const CHUNK: usize = 8 * 1_024;

/// Bytes that one turn reads before others on this thread, the timers of losses above all, have
/// theirs. Reading so much takes well below a millisecond.
const MAX_READ: usize = 8 * CHUNK;

/// What a turn ended with.
enum TurnEnd {
    /// There may be more to read.
    Full,
    /// The end of the connection.
    Over(NodeError),
}
