//! Which processor does what.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Trouble;

/// The processors of this process, the first apart from the others.
///
/// Left to itself, the kernel puts a client now on the server's processor and now on another, and a
/// round trip costs twice as much there as here. So the server gets a processor to itself, as it
/// has when it is another machine, and every side gets all others.
#[derive(Debug)]
pub(crate) struct CpuPlacement {
    first: CpuSet,
    others: CpuSet,
}

impl CpuPlacement {
    /// `None` on a machine with a single processor: there is nothing to divide.
    pub(crate) fn divide() -> Result<Option<Self>, Trouble> {
        let all = sched_getaffinity(None)?;
        let mut mine = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu));
        let (mut first, mut others) = (CpuSet::new(), CpuSet::new());
        if let Some(cpu) = mine.next() {
            first.set(cpu);
        }
        mine.for_each(|cpu| others.set(cpu));
        Ok((others.count() > 0).then_some(Self { first, others }))
    }

    /// What this thread starts from now on, goes to the first.
    pub(crate) fn start_on_the_first(&self) -> Result<(), Trouble> {
        Ok(sched_setaffinity(None, &self.first)?)
    }

    /// What this thread starts from now on, goes to the others.
    pub(crate) fn start_on_the_others(&self) -> Result<(), Trouble> {
        Ok(sched_setaffinity(None, &self.others)?)
    }
}
