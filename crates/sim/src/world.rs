//! What can be searched.

use crate::{Report, Violation};

/// A world with states, and steps between them.
pub(crate) trait World {
    /// One state, with all that is known in it.
    type State: Clone;
    /// What can happen.
    type Step: Copy;

    /// Where it begins.
    fn first(&self) -> Self::State;

    /// All steps that are possible.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);

    /// Takes a step, which is possible in this state, and checks what comes of it.
    fn take(&self, state: &mut Self::State, step: Self::Step) -> Result<(), Violation>;

    /// The steps of a way in words, each with what is kept after it.
    fn trace(&self, way: &[Self::Step]) -> Vec<String>;

    /// Tries what becomes of a state when nothing more goes wrong; nothing to try, by default. What
    /// breaks a rule comes with the steps that do.
    fn try_liveness(
        &self,
        _state: &Self::State,
        _seed: usize,
        _report: &mut Report,
    ) -> Result<(), (Violation, Vec<Self::Step>)> {
        Ok(())
    }
}
