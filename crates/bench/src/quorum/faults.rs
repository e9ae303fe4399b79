//! What one failing node of five costs.

use std::{
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use tenure_testkit::{Frozen, Proxy, Server};

use super::{fanout::TTL, nodes::VotingServers, report::QuorumReport, side::QuorumSide};
use crate::{
    Trouble,
    series::{Series, take_turns},
};

/// Runs cycles with all nodes well, and with the last of five in each kind of trouble, by turns.
pub(super) fn measure(
    nodes: &VotingServers,
    rounds: usize,
    cycles: u32,
    report: &mut QuorumReport,
) -> Result<(), Trouble> {
    let limit_ms = NODE_LIMIT.as_secs_f64() * 1e3;
    println!(
        "\none of five in trouble: TTL {TTL:?}, so each node may take {limit_ms:.0} ms to vote"
    );
    let fifth = Fifth::new(nodes)?;
    let mut all = Vec::new();
    for (name, url) in fifth.urls()? {
        let servers = [&fifth.others[..], &[url]].concat().join(",");
        let key = format!("bench-{}-{name}", std::process::id());
        let side = QuorumSide::Tenure.name();
        let args = ["voter", "--name", side, "--servers", &servers, "--key", &key];
        all.push(Series::start(name, &args)?);
    }
    let _trouble = fifth.strike();
    take_turns(&mut all, rounds, cycles)?;
    println!("{:<14}{:>10}{:>10}{:>10}", "fifth node", "p50_us", "p99_us", "max_us");
    for side in &all {
        let (p50, p99, most) = (side.p50(), side.p99(), side.most());
        println!("{:<14}{p50:>10.1}{p99:>10.1}{most:>10.0}", side.name);
    }
    let [healthy, control, others @ ..] = all.as_slice() else { return Err("two sides".into()) };
    report.control("healthy to healthy", control.ratio(healthy));
    for side in others {
        report.ratio(&format!("of {} to healthy", side.name), side.ratio(healthy), MAX_RATIO);
        let p99_ms = side.p99() / 1e3;
        let words = format!("p99 {p99_ms:.1} ms, {}: <= {:.0} ms", side.name, 2.0 * limit_ms);
        report.target(&words, p99_ms <= 2.0 * limit_ms);
    }
    Ok(())
}

/// The last node, in all its troubles, and the others, which stay well.
struct Fifth {
    others: Vec<String>,
    well: String,
    hung: Server,
    proxy: Proxy,
    mute: u16,
}

impl Fifth {
    fn new(nodes: &VotingServers) -> Result<Self, Trouble> {
        let mut others = nodes.urls();
        let well = others.pop().ok_or("no node")?;
        let fifth = nodes.iter().last().ok_or("no node")?;
        let hung = Server::builder(fifth.kind()).tcp().start();
        Ok(Self { others, well, hung, proxy: Proxy::to(fifth), mute: mute()? })
    }

    /// By what is wrong with it; twice with nothing.
    fn urls(&self) -> Result<Vec<(&'static str, String)>, Trouble> {
        // Bound and let go, so nobody listens there.
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Ok(vec![
            ("healthy", self.well.clone()),
            ("control", self.well.clone()),
            ("hung", self.hung.url()),
            ("refused", format!("redis://127.0.0.1:{closed}")),
            ("black-holed", self.proxy.url()),
            ("no such name", "redis://name.invalid".to_owned()),
            ("mute", format!("redis://127.0.0.1:{}", self.mute)),
        ])
    }

    /// What begins when everybody is connected.
    fn strike(&self) -> Frozen {
        self.proxy.black_hole();
        self.hung.freeze_process()
    }
}

/// Accepts at this port, and never answers.
fn mute() -> Result<u16, Trouble> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        // Kept, since a connection that is dropped is closed. Ends with the program.
        let _open: Vec<TcpStream> = listener.incoming().map_while(Result::ok).collect();
    });
    Ok(port)
}

/// What the library gives a node to vote at this TTL, unless set.
const NODE_LIMIT: Duration = Duration::from_millis(500);

/// What a node in trouble may cost of the others' median.
const MAX_RATIO: f64 = 1.3;
