//! Steps in words.

use std::fmt;

use crate::{
    attempt::{Force, Keep},
    message::{Ask, Content, Delivery, PendingRequest},
    model::Model,
    state::{Line, QueueState},
    step::QueueStep,
    world::World,
};

/// The steps of a way, each with what the server keeps after it.
pub(crate) fn trace(model: &Model, way: &[QueueStep]) -> Vec<String> {
    let mut state = QueueState::new(&model.config);
    let take = |step: &QueueStep| {
        let words = in_words(&state, *step);
        let broken = model.take(&mut state, *step).is_err();
        let then = if broken { " !" } else { "" };
        format!("{words}{then}  {}", ServerText(&state))
    };
    let mut lines: Vec<_> = way.iter().map(take).collect();
    // Time that passes without an effect says nothing the second time.
    lines.dedup();
    lines
}

fn in_words(state: &QueueState, step: QueueStep) -> String {
    match step {
        QueueStep::Begin(who) => format!("{who} asks"),
        QueueStep::Force(who, Force::Steal) => format!("{who} steals"),
        QueueStep::Force(who, Force::Release) => format!("{who} releases by force"),
        QueueStep::Keep(who, Keep::Resume) => format!("{who} resumes"),
        QueueStep::Keep(who, Keep::Confirm) => format!("{who} confirms its number"),
        QueueStep::Keep(who, Keep::Repair) => format!("{who} asks for its key once more"),
        QueueStep::Run(line) => {
            let requests = &state.clients[usize::from(line.client)].requests;
            let request = requests.iter().find(|request| request.epoch == line.epoch);
            let old = Model::current(state, line.client) != Some(line);
            let old = if old { "OLD " } else { "" };
            request.map_or_else(String::new, |request| format!("server runs {old}{request}"))
        }
        QueueStep::Deliver(client) => {
            let message = state.clients[usize::from(client)].inbox.front();
            message.map_or_else(String::new, ToString::to_string)
        }
        QueueStep::Poll(who) => format!("{who} looks"),
        QueueStep::Resend(who) => format!("{who} asks again, unanswered"),
        QueueStep::Cancel(who) => format!("{who} gives up"),
        QueueStep::Release(who) => format!("{who} releases"),
        QueueStep::Renew(who) => format!("{who} renews"),
        QueueStep::Disconnect(client) => format!("c{client} loses its connection"),
        QueueStep::Reconnect(client) => format!("c{client} reconnects"),
        QueueStep::Notice(line) => format!("server knows that {line} has ended"),
        QueueStep::Crash(client) => format!("c{client} crashes"),
        QueueStep::Delete => "somebody deletes the lock's key".into(),
        QueueStep::Tick => "a tick".into(),
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}/{}", self.client, self.epoch)
    }
}

impl fmt::Display for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, epoch, age, ask } = self;
        let line = Line { client: who.client, epoch: *epoch };
        match ask {
            Ask::Acquire { ticket, previous, suspect } => {
                write!(f, "Acquire({who}")?;
                ticket.map_or(Ok(()), |ticket| write!(f, ", ticket {ticket}"))?;
                previous.map_or(Ok(()), |epoch| write!(f, ", before on /{epoch}"))?;
                suspect.map_or(Ok(()), |suspect| write!(f, ", suspects {suspect}"))?;
            }
            Ask::Renew => write!(f, "Renew({who}")?,
            Ask::Force(Force::Steal) => write!(f, "Steal({who}")?,
            Ask::Force(Force::Release) => write!(f, "ForceRelease({who}")?,
            Ask::Keep(keep) => write!(f, "{keep:?}({who}")?,
            Ask::Release { leave_tombstone, .. } => {
                write!(
                    f,
                    "Release({who}{}",
                    if *leave_tombstone { ", leave_tombstone" } else { "" }
                )?;
            }
        }
        write!(f, ") from {line}, {age} ticks old")
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, says } = self;
        write!(f, "{who} reads ")?;
        match says {
            Content::Granted { number, age } => {
                write!(f, "Granted {number}, asked {age} ticks ago")
            }
            Content::Queued { left, ticket, position } => {
                write!(f, "Queued at {position}, ticket {ticket}, held for {left} ms")
            }
            Content::More => f.write_str("More"),
            Content::Cancelled => f.write_str("Cancelled"),
            Content::Renewed { age } => write!(f, "Renewed, asked {age} ticks ago"),
            Content::Kept => f.write_str("an answer that changes nothing"),
            Content::Lost => f.write_str("Gone or Other"),
            Content::Released { more } => {
                f.write_str(if *more { "Released, More" } else { "Released" })
            }
            Content::Grant => f.write_str("the message that it is its turn"),
            Content::SuccessorWatch { granted } => {
                write!(f, "the message that it watches {granted}")
            }
        }
    }
}

/// What a server keeps.
struct ServerText<'a>(&'a QueueState);

impl fmt::Display for ServerText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.0.server;
        match server.lock {
            Some((who, left)) => write!(f, "[{who} {left} ms;")?,
            None => f.write_str("[free;")?,
        }
        for entry in &server.queue {
            write!(f, " {}:{}/{}", entry.ticket, entry.who, entry.epoch)?;
        }
        let released = self.0.everyone().filter(|who| self.0.attempt(*who).has_tombstone);
        for who in released {
            write!(f, " !{who}")?;
        }
        f.write_str("]")
    }
}
