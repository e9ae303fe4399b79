//! Whether an engine can still do anything for this process.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{clock::Pulse, process::Process};

/// What handles may know of an engine without asking it.
#[derive(Debug)]
pub(crate) struct EngineStatus {
    alive: AtomicBool,
    /// A forked child has the memory of the engine, and no thread to run it.
    process: Process,
    /// Whether the engine's thread ran when it was to run.
    pub(super) pulse: Arc<Pulse>,
    /// Releases that were asked for and that no server has answered.
    open: AtomicUsize,
}

impl EngineStatus {
    pub(super) fn begin() -> Self {
        let (alive, open) = (AtomicBool::new(true), AtomicUsize::new(0));
        Self { alive, process: Process::current(), pulse: Arc::default(), open }
    }

    /// Whether the engine runs, in this very process.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire) && self.is_ours()
    }

    pub(super) fn end(&self) {
        self.alive.store(false, Ordering::Release);
    }

    /// Whether this is the process that started the engine.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    /// Whether a release may still have to be written.
    pub(super) fn has_open_releases(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }
}

/// A release that is not answered yet, from the moment it is wanted.
#[derive(Debug)]
pub(crate) struct OpenRelease(Arc<EngineStatus>);

impl OpenRelease {
    pub(super) fn begin(status: &Arc<EngineStatus>) -> Self {
        status.open.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(status))
    }
}

impl Drop for OpenRelease {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
