//! Fuzzing: a parser is fed with what it was not made for, again and again.
//!
//! A target is a test whose name begins with `fuzz_`, beside the parser, so that
//! parsers stay private. Its seeds are the files of the directory of its name in `fuzz/`. Inputs
//! whose outcome is new join the seeds, so the outcome should distinguish what the parser
//! distinguishes.
//!
//! ```no_run
//! tenure_testkit::fuzz("numbers", |input| {
//!     let number = std::str::from_utf8(input).ok().and_then(|text| text.parse::<i8>().ok());
//!     assert!(number.is_none_or(|number| number.to_string().len() < 5));
//!     number.is_some()
//! });
//! ```

mod mutate;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use mutate::Mutator;

/// Feeds a test with its seeds and with what becomes of them, for as long as
/// `TENURE_FUZZ_MS` says; half a second unless set. The same `TENURE_FUZZ_SEED`, 1 unless set,
/// gives the same inputs.
///
/// # Panics
/// When the test panics: the input was made as small as may be and written to
/// `target/fuzz/TARGET`, and is shown.
pub fn fuzz<O: Hash>(target: &str, mut test: impl FnMut(&[u8]) -> O) {
    let mut pool = seeds(target);
    assert!(!pool.is_empty(), "fuzz/{target} has no seeds");
    let budget = Duration::from_millis(setting("TENURE_FUZZ_MS", 500));
    let mut mutator = Mutator::new(setting("TENURE_FUZZ_SEED", 1));
    let mut outcomes = HashSet::new();
    let mut run = |input: &[u8]| match catch_unwind(AssertUnwindSafe(|| test(input))) {
        Ok(outcome) => Ok(outcomes.insert(hash(&outcome))),
        Err(panic) => Err(panic),
    };
    let seeds = pool.len();
    let began = Instant::now();
    let mut inputs = 0_u64;
    // Looked at now and then: the clock costs more than some parsers.
    while !inputs.is_multiple_of(64) || inputs < seeds as u64 || began.elapsed() < budget {
        let seed = usize::try_from(inputs)
            .ok()
            .and_then(|index| pool.get(index).filter(|_| index < seeds));
        let input = seed.cloned().unwrap_or_else(|| mutator.input(&pool));
        inputs += 1;
        match run(&input) {
            Ok(is_new) if is_new && pool.len() < LARGEST_POOL => pool.push(input),
            Ok(_) => {}
            Err(panic) => {
                let small = smaller(input, |input| run(input).is_err());
                report(target, &small);
                resume_unwind(panic);
            }
        }
    }
    #[expect(clippy::print_stdout, reason = "figures are part of the output of tests")]
    {
        println!("fuzz {target}: {inputs} inputs, {} outcomes", outcomes.len());
    }
}

/// Seeds and what has joined them: enough to choose from.
const LARGEST_POOL: usize = 4_096;

fn setting(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

fn hash(outcome: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    outcome.hash(&mut hasher);
    hasher.finish()
}

/// The repository's seeds, in the order of their names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let dir = root().join("fuzz").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("read a seed")).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Leaves out what is not needed for the panic: halves, then quarters, and so on.
fn smaller(mut input: Vec<u8>, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut length = input.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..(at + length).min(input.len()));
            if fails(&shorter) {
                input = shorter;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    input
}

fn report(target: &str, input: &[u8]) {
    let dir = root().join("target/fuzz").join(target);
    let path = dir.join(format!("{:016x}", hash(&input)));
    // What cannot be written is still shown.
    drop(fs::create_dir_all(&dir).and_then(|()| fs::write(&path, input)));
    #[expect(clippy::print_stderr, reason = "the test fails: its reader wants to know")]
    {
        eprintln!("fuzz {target}: panics for \"{}\"", input.escape_ascii());
        eprintln!("fuzz {target}: put {} into fuzz/{target} once it is mended", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it is for: a fault behind a few bytes in the right order is found, and made small.
    #[test]
    fn a_failure_is_found_and_minimized() {
        let mut mutator = Mutator::new(1);
        let mut pool = vec![b"*3\r\n$1\r\n7\r\n:1\r\n_\r\n".to_vec()];
        // Deep, and only reached step by step.
        let depth = |input: &[u8]| b"-9$".iter().zip(input).take_while(|(a, b)| a == b).count();
        let mut seen = HashSet::new();
        let found = (0..2_000_000).find_map(|_| {
            let input = mutator.input(&pool);
            let outcome = depth(&input);
            if seen.insert(outcome) {
                pool.push(input.clone());
            }
            (outcome == 3).then_some(input)
        });
        let small = smaller(found.expect("it is found"), |input| depth(input) == 3);
        assert_eq!(small, b"-9$");
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let pool = vec![b"seed".to_vec(), b"another 12".to_vec()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..100).map(|_| mutator.input(&pool)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }
}
