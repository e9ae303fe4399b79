//! `tenure status`.

use std::{panic::resume_unwind, thread};

use tenure::{
    InspectError, Inspection, NodeError, NodeReport, Source,
    blocking::{Lock, Renewal},
};

use super::{blocking_lock, trouble_of};
use crate::{
    acquire::{described, seconds},
    args::StatusArgs,
    exit,
    failure::{Failure, chain, indeterminate, of_config},
    json::Object,
    output::show,
};

/// Prints the holder, the waiters, and which of several servers vote.
///
/// # Errors
///
/// A [`Failure`] when the holder is unknown.
pub(crate) fn status(wanted: &StatusArgs) -> Result<u8, Failure> {
    let key = &wanted.lock.shown;
    let failed = |error| match error {
        InspectError::Config { error, .. } => of_config(&error),
        error => {
            indeterminate(&format!("could not determine whether the lock {key} is held"), &error)
        }
    };
    let mut lock = blocking_lock(&wanted.lock)?;
    if let Some(longest) = wanted.max_ttl {
        lock = lock.renewal(Renewal::Manual).ttl(longest).max_ttl(longest);
    }
    let (inspection, nodes) = asked(&lock, wanted.unproved);
    let nodes = nodes.map_err(failed)?;
    // One alone always votes.
    let nodes = if nodes.len() > 1 { nodes } else { Vec::new() };
    let inspection = inspection.map_err(failed);
    let known = inspection.as_ref().ok();
    let text = if known.is_none() && nodes.is_empty() {
        String::new()
    } else if wanted.json {
        json(wanted.lock.key.as_encoded_bytes(), known, &nodes)
    } else {
        known.map(words).unwrap_or_default() + &nodes.iter().map(line).collect::<String>()
    };
    let shown = show(&text);
    let code = match inspection? {
        Inspection { held: Some(_), .. } => 0,
        Inspection { fault: Some(_), .. } => exit::UNKNOWN,
        _ => exit::NO,
    };
    shown.map(|()| code)
}

/// Asks both at once: a server that is silent keeps each of them waiting.
fn asked(
    lock: &Lock,
    unproved: bool,
) -> (Result<Inspection, InspectError>, Result<Vec<NodeReport>, InspectError>) {
    thread::scope(|scope| {
        let nodes = scope.spawn(|| lock.nodes());
        let inspection = if unproved { lock.inspect_unproved() } else { lock.inspect() };
        (inspection, nodes.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Whether one of several servers may vote.
fn line(report: &NodeReport) -> String {
    let NodeReport { node, trouble, .. } = report;
    let Some(error) = trouble else { return format!("{node} may vote\n") };
    trouble_of(error) + "\n"
}

/// How long until a server votes by itself.
fn votes_in_ms(error: &NodeError) -> Option<u64> {
    u64::try_from(error.votes_in()?.as_millis()).ok()
}

/// The holder, and the waiters in their order.
fn words(inspection: &Inspection) -> String {
    let free = || match inspection.fault {
        Some(fault) => format!("held by nobody, and cannot be acquired: {fault}"),
        None => "free".to_owned(),
    };
    let mut text = described(inspection).map_or_else(free, |holder| format!("held by {holder}"));
    text += match inspection.source {
        Source::Primary => "",
        Source::Replica => ", as of a replica, which may be behind",
        _ => ", unproved: this user may not write, so the server may be a replica",
    };
    text.push('\n');
    for waiter in &inspection.waiters {
        let since = inspection.waiting_for(waiter).map(|since| format!(" for {}", seconds(since)));
        text += &format!("{} waits{}\n", waiter.holder, since.unwrap_or_default());
    }
    let listed = u64::try_from(inspection.waiters.len()).unwrap_or(u64::MAX);
    let more = inspection.waiting.unwrap_or_default().saturating_sub(listed);
    if more > 0 {
        text += &format!("{more} more wait\n");
    }
    text
}

fn json(key: &[u8], inspection: Option<&Inspection>, nodes: &[NodeReport]) -> String {
    let object = Object::new().key(key);
    let object = match inspection {
        Some(inspection) => of_lock(object, inspection),
        None => object.text("held", None),
    };
    if nodes.is_empty() {
        return object.line();
    }
    let nodes = nodes.iter().map(|report| {
        let reason = report.trouble.as_ref().map(|error| chain(error));
        Object::new()
            .text("node", Some(&report.node))
            .flag("votes", reason.is_none())
            .text("reason", reason.as_deref())
            .number("votes_in_ms", report.trouble.as_ref().and_then(votes_in_ms))
    });
    object.objects("nodes", nodes).line()
}

fn of_lock(object: Object, inspection: &Inspection) -> Object {
    let Inspection { held, last_number, fault, waiters, waiting, source, .. } = inspection;
    let holder = held.as_ref().map(|held| &held.holder);
    let left = held.as_ref().and_then(|held| held.ttl_left.get());
    let since = inspection.held_for();
    let ms = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let waiters = waiting.map(|_| {
        waiters.iter().map(|waiter| {
            Object::new()
                .holder("holder", Some(&waiter.holder))
                .number("waiting_ms", inspection.waiting_for(waiter).map(ms))
        })
    });
    let source = match source {
        Source::Primary => "primary",
        Source::Replica => "replica",
        _ => "unproved",
    };
    object
        .flag("held", held.is_some())
        .holder("holder", holder)
        .flag("foreign", holder.is_some_and(tenure::Holder::is_foreign))
        .number("ttl_ms", left.map(ms))
        .number("held_ms", since.map(ms))
        .number("last_fence", last_number.map(tenure::FencingToken::get))
        .text("fault", fault.map(|fault| fault.to_string()).as_deref())
        .text("source", Some(source))
        .number("waiting", *waiting)
        .objects_or_null("waiters", waiters)
}
