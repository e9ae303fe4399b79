//! The engine's end of this client's socket.

use std::{io, os::unix::net::UnixDatagram as Socket, rc::Rc};

use tenure_core::{Channel, Notification};
use tokio::{net::UnixDatagram, sync::mpsc};

use crate::node::waiter::Waiters;

/// Delivers the messages that arrive at the latest socket, as long as there may be another.
pub(super) async fn listen(
    waiters: Rc<Waiters>,
    channel: Channel,
    mut sockets: mpsc::UnboundedReceiver<Socket>,
) {
    let mut next = sockets.recv().await;
    while let Some(socket) = next {
        next = match UnixDatagram::from_std(socket) {
            Ok(socket) => tokio::select! {
                next = sockets.recv() => next,
                // A socket that cannot be read is closed, so that others do not send to it.
                _ = deliver(&waiters, &channel, &socket) => sockets.recv().await,
            },
            Err(_) => sockets.recv().await,
        };
    }
}

async fn deliver(waiters: &Waiters, channel: &Channel, socket: &UnixDatagram) -> io::Result<()> {
    let mut buffer = [0; MAX];
    loop {
        socket.readable().await?;
        for count in 1.. {
            let length = match socket.try_recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let text = buffer.get(..length).and_then(|text| std::str::from_utf8(text).ok());
            if let Some(notification) = text.and_then(|text| Notification::read(channel, text)) {
                waiters.deliver(notification);
            }
            if count == MIN_ROOM {
                // So many in a row may have filled the socket, and others may be lost.
                waiters.wake_all();
            }
        }
    }
}

/// A token's label may be 192 bytes; the other words of a message are shorter.
const MAX: usize = 1_024;

/// As many messages as a Linux socket holds at least, unless somebody set it lower.
const MIN_ROOM: u32 = 10;
