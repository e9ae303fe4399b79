//! What a server does with a request: the real row, behind the real rule or one of the others.

use std::time::Duration;

use tenure_core::{
    Channel, Eligibility, HolderLabel, LockKey, Marker, MarkerCheck, MarkerFound, MarkerMode,
    NodeTime, Op, RenewRequest, RenewalAnswer, Reply, Row, ServerIdentity, Stored, StoredValue,
    Token, Ttl,
};

use super::{
    config::{ForgettingConfig, ForgettingRule},
    state::{ENDED, ForgettingServer, Id, KnownRun, Mark, VoteAnswer},
};

/// The words that stand for clients on a server.
#[derive(Debug)]
pub(crate) struct ClientTokens {
    key: LockKey,
    ttl: Ttl,
    tokens: Vec<Token>,
}

impl ClientTokens {
    pub(crate) fn new(config: &ForgettingConfig) -> Self {
        let token = |random: u8| Token::new(random.into(), &HolderLabel::default());
        let ttl = Duration::from_millis(u64::from(config.ttl) * TICK_MS);
        Self {
            key: LockKey::new("job").expect("a key"),
            ttl: Ttl::new(ttl).expect("a TTL"),
            tokens: (0..=ENDED).map(token).collect(),
        }
    }

    pub(crate) const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The server carries out an acquisition; whether it granted the lock.
    pub(crate) fn acquire(&self, server: &mut ForgettingServer, who: u8) -> bool {
        let (key, token, ttl) = self.of(who);
        let proposal = tenure_core::FencingToken::new(NUMBER);
        let op = Op::Acquire { key, token, ttl, proposal, place: None };
        match self.apply(server, &op) {
            Reply::Voted { reply, .. } => matches!(*reply, Reply::Granted(_)),
            reply => unreachable!("no vote: {reply:?}"),
        }
    }

    /// The server carries out a renewal.
    pub(crate) fn renew(&self, server: &mut ForgettingServer, who: u8) -> RenewalAnswer {
        let (key, token, ttl) = self.of(who);
        match self.apply(server, &Op::Renew(vec![RenewRequest { key, token, ttl }])) {
            Reply::Renewed(mut answers) => answers.remove(0),
            reply => unreachable!("no renewal: {reply:?}"),
        }
    }

    /// A token asks for the lease that it had.
    pub(crate) fn resume(&self, server: &mut ForgettingServer, who: u8) -> VoteAnswer {
        let (key, token, ttl) = self.of(who);
        match self.apply(server, &Op::Resume { key, token, ttl }) {
            Reply::Granted(_) => VoteAnswer::Yes,
            Reply::Held(_) => VoteAnswer::Other,
            _ => VoteAnswer::Nothing,
        }
    }

    fn of(&self, who: u8) -> (LockKey, Token, Ttl) {
        (self.key.clone(), self.tokens[usize::from(who)].clone(), self.ttl)
    }

    fn apply(&self, server: &mut ForgettingServer, op: &Op) -> Reply {
        let stored = |bytes: &[u8], left: u8| {
            let ends_ms = Some(NOW.ttl_ms + u64::from(left) * TICK_MS);
            Stored { value: StoredValue::Bytes(bytes.to_vec()), ends_ms }
        };
        let lock = server.data.lock;
        let token = |who: u8| self.tokens[usize::from(who)].as_bytes();
        let mut row = Row {
            lock: lock.map(|(who, left)| stored(token(who), left)),
            // The number that every grant has: numbers have a search of their own.
            fence: lock.map(|(_, left)| stored(NUMBER.to_string().as_bytes(), left)),
            queue: None,
        };
        let (reply, _) = row.apply(NOW, &|_: &Channel| false, op);
        server.data.lock = row.lock.map(|stored| {
            let Stored { value: StoredValue::Bytes(bytes), ends_ms: Some(ends) } = stored else {
                unreachable!("a string with an end")
            };
            let who = self.tokens.iter().position(|token| token.as_bytes() == bytes);
            let who = u8::try_from(who.expect("a token of somebody")).expect("few");
            (who, u8::try_from((ends - NOW.ttl_ms) / TICK_MS).expect("few ticks"))
        });
        reply
    }
}

/// Whether what the server says of this client's key counts, by the rule; it may write its marker.
pub(crate) fn is_eligible(
    config: &ForgettingConfig,
    server: &mut ForgettingServer,
    known: &mut KnownRun,
) -> bool {
    let rule = config.rule;
    match rule {
        ForgettingRule::All => return true,
        ForgettingRule::Uptime => return server.uptime >= config.span,
        ForgettingRule::RunMemory => {
            if known.run != server.run {
                let left = config.span.saturating_sub(server.uptime);
                known.wait = if known.run == 0 { left } else { config.span };
                known.run = server.run;
            }
            return known.wait == 0;
        }
        _ => {}
    }
    let (run, replid) = match rule {
        ForgettingRule::NoIdentity => (1, 1),
        ForgettingRule::RunAlone => (server.run, server.run),
        _ => (server.run, server.replid),
    };
    let mode = match rule {
        ForgettingRule::MissingIsNew => MarkerMode::Open,
        _ => MarkerMode::Check,
    };
    let eligibility = check(config, server, (run, replid), mode);
    if rule == ForgettingRule::FirstGrantWrites && eligibility != Eligibility::Eligible {
        server.data.marker = None;
        _ = check(config, server, (run, replid), MarkerMode::Open);
        return true;
    }
    !matches!(eligibility, Eligibility::Closed(_))
}

/// The real rule, on a marker that is put together from what passed since.
fn check(
    config: &ForgettingConfig,
    server: &mut ForgettingServer,
    (run, replid): (Id, Id),
    mode: MarkerMode,
) -> Eligibility {
    let ticks = |ms: u64| u8::try_from((ms / TICK_MS).min(MAX)).expect("bounded");
    let ms = |ticks: u8| u64::from(ticks) * TICK_MS;
    let client_alone = config.rule == ForgettingRule::ServerClock;
    let check = MarkerCheck {
        span_ms: ms(config.span),
        client_ms: NOW.ttl_ms,
        database: 0,
        is_durable: config.is_durable,
        mode,
    };
    let text = server.data.marker.map(|mark| {
        let client_passed = if client_alone { mark.passed } else { mark.client_passed };
        Marker {
            cause: mark.cause,
            yield_ms: ms(mark.open),
            longest_ms: ms(mark.longest),
            floor_ms: ms(mark.floor),
            database: 0,
            replid: format!("{:x}", mark.replid),
            run_id: format!("{:x}", mark.run),
            since_ms: NOW.ttl_ms - ms(mark.passed),
            client_since_ms: NOW.ttl_ms - ms(client_passed),
        }
        .to_string()
    });
    let found = text.as_ref().map_or(MarkerFound::Nothing, |t| MarkerFound::Text(t.as_bytes()));
    let identity = ServerIdentity {
        replid: format!("{replid:x}"),
        has_second_replid: server.has_second_replid,
        run_id: format!("{run:x}"),
    };
    let (eligibility, written) = check.judge(found, Some(&identity), NOW.ttl_ms);
    if let Some(written) = written {
        let marker = Marker::read(written.as_bytes()).expect("a marker is written");
        let id = |text: &str| Id::from_str_radix(text, 16).expect("small");
        let mark = Mark {
            cause: marker.cause,
            open: ticks(marker.yield_ms),
            longest: ticks(marker.longest_ms),
            floor: ticks(marker.floor_ms),
            replid: id(&marker.replid),
            run: id(&marker.run_id),
            passed: ticks(NOW.ttl_ms - marker.since_ms),
            client_passed: ticks(NOW.ttl_ms - marker.client_since_ms),
        };
        server.data.marker = Some(mark);
    }
    eligibility
}

/// Beyond this nothing is distinguished: above every span that is searched.
pub(crate) const MAX: u64 = 20;

pub(crate) const TICK_MS: u64 = 1_000;

/// The number of every grant.
const NUMBER: u64 = 5;

/// The servers' clocks, at every moment: below an hour, so that the number may be small.
const NOW: NodeTime = NodeTime { ttl_ms: 1_000_000, wall_us: 1_000_000_000 };
