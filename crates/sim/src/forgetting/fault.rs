//! What may go wrong with servers.

use super::{
    config::ForgettingFault,
    model::ForgettingStep,
    server::MAX,
    state::{Data, ForgettingServer, ForgettingState, SERVERS},
};

/// What goes wrong, where, and with whose data it goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerFault {
    pub(crate) what: ForgettingFault,
    pub(crate) server: usize,
    /// The server that it was a replica of; another than these has no data.
    pub(crate) primary: Option<usize>,
}

/// All that may go wrong in this state.
pub(crate) fn possible(
    state: &ForgettingState,
    faults: &[ForgettingFault],
    steps: &mut Vec<ForgettingStep>,
) {
    for &what in faults {
        for server in 0..SERVERS {
            let mut strikes =
                |primary| steps.push(ForgettingStep::Fault(ServerFault { what, server, primary }));
            match what {
                ForgettingFault::Replicated => {
                    let others = (0..SERVERS).filter(|other| *other != server);
                    others.map(Some).chain([None]).for_each(strikes);
                }
                // Under a lock it ends the lock: no rule about votes helps against that.
                ForgettingFault::ClockForward if state.servers[server].data.lock.is_some() => {}
                _ => strikes(None),
            }
        }
    }
}

pub(crate) fn strike(state: &mut ForgettingState, fault: ServerFault, span: u8) {
    let ServerFault { what, server, primary } = fault;
    let data = primary.map_or_else(Data::default, |primary| state.servers[primary].data);
    let restarted = |state: &mut ForgettingState, data| {
        let run = state.fresh();
        state.servers[server].run = run;
        let replid = state.fresh();
        state.servers[server] =
            ForgettingServer { data, run, replid, has_second_replid: false, uptime: 0 };
    };
    match what {
        ForgettingFault::RestartEmpty => restarted(state, Data::default()),
        ForgettingFault::RestartKept => restarted(state, state.servers[server].data),
        ForgettingFault::Replicated => {
            let replid = state.fresh();
            let server = &mut state.servers[server];
            *server = ForgettingServer { data, replid, has_second_replid: true, ..*server };
        }
        ForgettingFault::Flushed => state.servers[server].data = Data::default(),
        ForgettingFault::MarkerLost => state.servers[server].data.marker = None,
        ForgettingFault::ClockForward => {
            let server = &mut state.servers[server];
            server.uptime = span;
            if let Some(mark) = &mut server.data.marker {
                let most = u8::try_from(MAX).unwrap_or(u8::MAX);
                mark.passed = (mark.passed + span).min(most);
            }
        }
    }
}
