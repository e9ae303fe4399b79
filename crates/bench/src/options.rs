//! Options: `--name value`, and `--name` alone.

use std::str::FromStr;

use crate::Trouble;

/// What was given, each to be taken once.
#[derive(Debug)]
pub(crate) struct BenchOptions(Vec<(String, Option<String>)>);

impl BenchOptions {
    /// Reads words.
    pub(crate) fn read(words: &[String]) -> Result<Self, Trouble> {
        let mut given: Vec<(String, Option<String>)> = Vec::new();
        for word in words {
            if let Some(name) = word.strip_prefix("--") {
                given.push((name.to_owned(), None));
            } else if let Some((_, value @ None)) = given.last_mut() {
                *value = Some(word.clone());
            } else {
                return Err(format!("do not know {word:?}").into());
            }
        }
        Ok(Self(given))
    }

    /// The value of an option, if it was given.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Trouble> {
        let Some(at) = self.0.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, value) = self.0.remove(at);
        let value = value.ok_or_else(|| format!("--{name} needs a value"))?;
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(format!("--{name} cannot be {value:?}").into()),
        }
    }

    /// The value of an option that this program gives to itself.
    pub(crate) fn needed<T: FromStr>(&mut self, name: &str) -> Result<T, Trouble> {
        self.value(name)?.ok_or_else(|| format!("--{name} is needed").into())
    }

    /// Whether an option without a value was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(given, value)| given != name || value.is_some());
        self.0.len() < before
    }

    /// That nothing is left that nobody asked for.
    pub(crate) fn nothing_else(&self) -> Result<(), Trouble> {
        match self.0.first() {
            Some((name, _)) => Err(format!("do not know --{name}").into()),
            None => Ok(()),
        }
    }
}
