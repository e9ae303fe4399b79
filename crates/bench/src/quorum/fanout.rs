//! The yardstick: commands to all nodes at once by the thinnest client there can be.

use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, poll};
use tenure_core::{
    FencingToken, HolderLabel, LockKey, Op, Quorum, Release, Reply, Token, Ttl,
    script::{self, Answer, Call},
};

use crate::{
    Trouble,
    cycle::DELETE,
    wire::{Frame, Wire, encode},
};

/// A plain connection to each node, and `poll` over all of them. No timers, no second try.
pub(super) struct Fanout {
    nodes: Vec<FanoutNode>,
    quorum: Quorum,
    out: Vec<u8>,
}

struct FanoutNode {
    wire: Wire,
    /// Answers that are still to come.
    owed: u32,
}

impl Fanout {
    pub(super) fn connect(urls: &[String]) -> Result<Self, Trouble> {
        let peer = |url: &String| Ok(FanoutNode { wire: Wire::connect(url)?, owed: 0 });
        let nodes = urls.iter().map(peer).collect::<Result<Vec<_>, Trouble>>()?;
        let quorum = Quorum::new(nodes.len()).ok_or("no node")?;
        Ok(Self { nodes, quorum, out: Vec::new() })
    }

    /// Sends a command to every node and hands in the answers, until one of them is enough. Those
    /// that come later are read along with the answers to the next.
    fn ask(
        &mut self,
        parts: &[&[u8]],
        mut is_enough: impl FnMut(Answer) -> Result<bool, Trouble>,
    ) -> Result<(), Trouble> {
        self.out.clear();
        encode(&mut self.out, parts)?;
        for node in &mut self.nodes {
            node.wire.write(&self.out)?;
            node.owed += 1;
        }
        loop {
            self.wait()?;
            for node in &mut self.nodes {
                while node.wire.has_more() {
                    let Frame::Reply(answer) = node.wire.receive()? else { continue };
                    node.owed -= 1;
                    if node.owed == 0 && is_enough(answer)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until there is something to receive.
    fn wait(&mut self) -> Result<(), Trouble> {
        if self.nodes.iter().any(|node| node.wire.has_more()) {
            return Ok(());
        }
        let sockets = self.nodes.iter().map(|node| PollFd::new(node.wire.socket(), PollFlags::IN));
        let mut sockets: Vec<_> = sockets.collect();
        poll(&mut sockets, None)?;
        let ready: Vec<_> = sockets.iter().map(|socket| !socket.revents().is_empty()).collect();
        for (node, _) in self.nodes.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
            node.wire.fill()?;
        }
        Ok(())
    }

    fn load(&mut self, script: &str) -> Result<String, Trouble> {
        let mut sha1 = String::new();
        let (mut open, all) = (self.nodes.len(), ["SCRIPT", "LOAD", script].map(str::as_bytes));
        self.ask(&all, |answer| {
            if let Answer::Bytes(bytes) = answer {
                sha1 = String::from_utf8(bytes)?;
            }
            open -= 1;
            Ok(open == 0)
        })?;
        Ok(sha1)
    }
}

/// tenure's own scripts: an acquisition under a number that a majority gave, and its release.
pub(super) fn scripts(
    urls: &[String],
    key: &str,
) -> Result<impl FnMut() -> Result<(), Trouble>, Trouble> {
    let mut fanout = Fanout::connect(urls)?;
    for script in script::ALL {
        fanout.load(script.text)?;
    }
    let (key, ttl, label) = (LockKey::new(key)?, Ttl::new(TTL)?, HolderLabel::new("fan-out")?);
    let mut request = 0;
    Ok(move || {
        request += 2;
        let (key, token) = (key.clone(), Token::new(u128::from(request), &label));
        let proposal = Some(clock()?);
        let (acquire, release) = (request, request + 1);
        let op = Op::Acquire { key: key.clone(), token: token.clone(), ttl, proposal, place: None };
        let needed = fanout.quorum.needed();
        let mut numbers = Vec::with_capacity(fanout.nodes.len());
        fanout.call(&op, acquire, |reply| {
            let Reply::Voted { reply, .. } = reply else { return Err("no vote".into()) };
            let Reply::Granted(number) = *reply else { return Err(NOT_FREE.into()) };
            numbers.push(number);
            Ok(numbers.iter().filter(|other| **other == number).count() == needed)
        })?;
        let number = numbers.last().copied();
        let (entries, leave_tombstone, yield_ms) = (Vec::new(), false, 0);
        let op = Op::Release { key, token, entries, leave_tombstone, yield_ms, number };
        let mut released = 0;
        fanout.call(&op, release, |reply| {
            let Reply::Released { release: Release::Released(_), .. } = &reply else {
                return Err(format!("{GONE} {reply:?}").into());
            };
            released += 1;
            Ok(released == needed)
        })
    })
}

impl Fanout {
    fn call(
        &mut self,
        op: &Op,
        request: u64,
        mut is_enough: impl FnMut(Reply) -> Result<bool, Trouble>,
    ) -> Result<(), Trouble> {
        let call = Call::new(op, request);
        let count = call.keys.len().to_string();
        let mut parts = vec![&b"EVALSHA"[..], call.script.sha1.as_bytes(), count.as_bytes()];
        parts.extend(call.keys.iter().chain(&call.args).map(Vec::as_slice));
        self.ask(&parts, |answer| is_enough(script::read(op, request, answer)?))
    }
}

/// `SET NX PX` and a compare-and-delete: what the recipes do on several nodes, without a number.
pub(super) fn plain(
    urls: &[String],
    key: &str,
) -> Result<impl FnMut() -> Result<(), Trouble>, Trouble> {
    let mut fanout = Fanout::connect(urls)?;
    let (delete, key) = (fanout.load(DELETE)?, key.as_bytes().to_vec());
    let (ttl, mut count) = (TTL.as_millis().to_string(), 0_u128);
    Ok(move || {
        count += 1;
        let token = format!("{count:032x}@plain").into_bytes();
        let needed = fanout.quorum.needed();
        let (mut granted, mut released) = (0, 0);
        fanout.ask(&[b"SET", &key, &token, b"NX", b"PX", ttl.as_bytes()], |answer| {
            let Answer::Bytes(_) = answer else { return Err(NOT_FREE.into()) };
            granted += 1;
            Ok(granted == needed)
        })?;
        fanout.ask(&[b"EVALSHA", delete.as_bytes(), b"1", &key, &token], |answer| {
            let Answer::Int(1) = answer else { return Err(GONE.into()) };
            released += 1;
            Ok(released == needed)
        })
    })
}

/// What an attempt proposes whose nodes have the clock of this host.
fn clock() -> Result<FencingToken, Trouble> {
    let now = u64::try_from(SystemTime::UNIX_EPOCH.elapsed()?.as_micros())?;
    Ok(FencingToken::new(now).ok_or("a clock far in the future")?)
}

const NOT_FREE: &str = "the key was not free";
const GONE: &str = "the key was gone";

/// The TTL of every side: the library's default.
pub(super) const TTL: Duration = Duration::from_secs(10);
