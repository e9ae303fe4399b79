//! How often one round trip is enough, by what the servers are asked.

use std::collections::HashSet;

use tenure_core::script::{self, Script};
use tenure_testkit::{Monitor, Server};

use super::{
    nodes::{self, VotingServers},
    report::QuorumReport,
    side::QuorumSide,
};
use crate::{
    Trouble,
    process::{Other, monotonic, sleep_until},
};

/// Counts acquisitions that nobody disturbs, and those of several who want the same lock at once.
pub(super) fn measure(
    nodes: &VotingServers,
    cycles: u32,
    report: &mut QuorumReport,
) -> Result<(), Trouble> {
    println!("\nround trips: as the servers saw them, by MONITOR");
    let alone = alone(nodes, cycles)?;
    report.target(&alone.words("alone", MIN_ALONE), alone.meets(MIN_ALONE));
    let crowd = crowd(nodes)?;
    let words = crowd.words(&format!("of {CONTENDERS} contenders"), MIN_CONTENDED);
    report.target(&words, crowd.meets(MIN_CONTENDED));
    Ok(())
}

fn alone(nodes: &VotingServers, cycles: u32) -> Result<Count, Trouble> {
    let (servers, key) = (nodes.urls().join(","), format!("bench-{}-alone", std::process::id()));
    let args = ["voter", "--name", QuorumSide::Tenure.name(), "--servers", &servers, "--key", &key];
    let mut process = Other::start(&args)?;
    process.ask("100")?;
    let monitors = monitors(nodes);
    process.ask(&cycles.to_string())?;
    Ok(count(monitors))
}

fn crowd(nodes: &VotingServers) -> Result<Count, Trouble> {
    let address = nodes::address(&nodes.urls());
    let key = format!("bench-{}-crowd", std::process::id());
    let args = ["contender", "--side", "tenure", "--server", &address, "--key", &key];
    let args = [&args[..], &["--clients", "1", "--hold-us", "0"]].concat();
    let mut processes = Vec::new();
    for _ in 0..CONTENDERS {
        let mut process = Other::start(&args)?;
        process.ask("ready")?;
        processes.push(process);
    }
    let monitors = monitors(nodes);
    let end = monotonic() + CROWD_NS;
    processes.iter_mut().try_for_each(|process| process.send(&format!("run {end}")))?;
    sleep_until(end);
    processes.iter_mut().try_for_each(|process| process.receive().map(|_| ()))?;
    drop(processes);
    Ok(count(monitors))
}

fn monitors(nodes: &VotingServers) -> Vec<Monitor> {
    nodes.iter().map(Server::monitor).collect()
}

/// Tokens, by what was done with them at any node.
#[derive(Debug, Default)]
struct Count {
    /// A lock was asked for.
    asked: HashSet<String>,
    /// A number was to be raised: a second round trip.
    confirmed: HashSet<String>,
    /// A lease was released, and its number left behind.
    held: HashSet<String>,
}

fn count(monitors: Vec<Monitor>) -> Count {
    let scripts: Vec<_> =
        script::ALL.iter().map(|script| (*script, as_monitored(script))).collect();
    let mut count = Count::default();
    for line in monitors.into_iter().flat_map(Monitor::stop) {
        count.take(&line, &scripts);
    }
    count
}

impl Count {
    fn take(&mut self, line: &str, scripts: &[(&Script, String)]) {
        let called = scripts.iter().find_map(|(script, text)| {
            let by_sha1 = line.split_once(script.sha1);
            let (_, rest) = by_sha1.or_else(|| line.split_once(text.as_str()))?;
            Some((script.name, rest))
        });
        let Some((name, rest)) = called else { return };
        // Behind the script: the number of keys, the keys, request, token, and what differs.
        let mut words = rest.split('"').skip(2).step_by(2);
        let keys = words.next().and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        let token = words.nth(keys + 1).unwrap_or_default().to_owned();
        match name.trim_start_matches("checked ") {
            "acquire" => _ = self.asked.insert(token),
            "confirm" => _ = self.confirmed.insert(token),
            "release" if words.nth(2) != Some("0") => _ = self.held.insert(token),
            _ => {}
        }
    }

    /// Whether so many acquisitions took one round trip. Not when the requests of some were missed.
    fn meets(&self, least: f64) -> bool {
        self.held.is_subset(&self.asked) && self.share() >= least
    }

    /// Of the acquisitions, those that no number was raised for.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    fn share(&self) -> f64 {
        let twice = self.held.intersection(&self.confirmed).count();
        1.0 - twice as f64 / self.held.len() as f64
    }

    fn words(&self, whose: &str, least: f64) -> String {
        format!(
            "{:.1} % of {} acquisitions {whose} took one round trip: >= {:.0} % ({} attempts)",
            self.share() * 100.0,
            self.held.len(),
            least * 100.0,
            self.asked.len(),
        )
    }
}

/// The text as MONITOR shows it, where it is sent in full.
fn as_monitored(script: &Script) -> String {
    script.text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const CONTENDERS: usize = 6;

/// How long they contend.
const CROWD_NS: u64 = 2_000_000_000;

const MIN_ALONE: f64 = 0.99;
const MIN_CONTENDED: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_by_what_was_done_with_them() {
        let scripts: Vec<_> =
            script::ALL.iter().map(|script| (*script, as_monitored(script))).collect();
        let named = |name: &str| scripts.iter().find(|(script, _)| script.name == name).unwrap();
        let mut count = Count::default();
        let mut take = |name: &str, in_full: bool, args: &str| {
            let (script, text) = named(name);
            let (command, script) =
                if in_full { ("EVAL", text.as_str()) } else { ("EVALSHA", script.sha1) };
            let keys = if name.starts_with("checked") { r#""4" "k" "f" "q" "m""# } else { THREE };
            let line = format!(r#"1.2 [0 127.0.0.1:9] "{command}" "{script}" {keys} {args}"#);
            count.take(&line, &scripts);
        };
        take("acquire", true, r#""1" "a@" "1000""#);
        take("acquire", false, r#""2" "b@" "1000""#);
        take("checked acquire", false, r#""3" "c@" "1000""#);
        take("confirm", true, r#""4" "b@" "7" "86400000""#);
        take("release", false, r#""5" "a@" "0" "0" "6""#);
        take("release", true, r#""6" "b@" "0" "0" "7""#);
        take("release", false, r#""7" "c@" "1" "0" "0""#);
        count.take(r#"1.3 [0 lua] "GET" "k""#, &scripts);
        assert_eq!((count.asked.len(), count.confirmed.len(), count.held.len()), (3, 1, 2));
        assert!((count.share() - 0.5).abs() < f64::EPSILON);
        assert!(count.meets(0.5) && !count.meets(0.6));
        count.asked.remove("a@");
        assert!(!count.meets(0.5), "a request was missed");
    }

    const THREE: &str = r#""3" "k" "f" "q""#;
}
