//! A lock's settings, checked before anything is sent.

use std::{num::NonZeroU32, time::Duration};

use tenure_core::{HolderLabel, LeaseSettings, LockKey, Ttl, Wait};

use crate::{
    engine::{AcquireRequest, How},
    error::ConfigError,
    event::Class,
};

/// Whether a lease is renewed in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renewal {
    /// The client renews at a third of the validity, as long as the guard lives. The TTL then only
    /// says how long others wait after a crash.
    #[default]
    Background,
    /// Only the caller renews, with [`LockGuard::extend`](crate::LockGuard::extend). Without that,
    /// the lock is held at most for the TTL.
    Manual,
}

/// What a lock was set to, good or bad.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    key: Result<LockKey, ConfigError>,
    pub(super) ttl: Duration,
    pub(super) wait: Wait,
    pub(super) renewal: Renewal,
    pub(super) max_hold: Option<Duration>,
    pub(super) min_validity: Option<Duration>,
    pub(super) node_limit: Option<Duration>,
    pub(super) max_ttl: Option<Duration>,
    pub(super) repair: bool,
    pub(super) label: Option<String>,
    pub(super) class: Class,
    pub(super) yield_to_pollers: Option<u32>,
    pub(super) overwrite_data: bool,
}

impl Settings {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            key: LockKey::new(key).map_err(ConfigError::Key),
            ttl: DEFAULT_TTL,
            wait: Wait::Forever,
            renewal: Renewal::Background,
            max_hold: None,
            min_validity: None,
            node_limit: None,
            max_ttl: None,
            repair: true,
            label: None,
            class: "default".into(),
            yield_to_pollers: None,
            overwrite_data: false,
        }
    }

    pub(super) fn key(&self) -> Result<LockKey, ConfigError> {
        self.key.clone()
    }

    fn is_renewed(&self) -> bool {
        self.renewal == Renewal::Background
    }

    fn ttl(&self) -> Result<Ttl, ConfigError> {
        let ttl = if self.is_renewed() { Ttl::renewed(self.ttl) } else { Ttl::new(self.ttl) };
        ttl.map_err(ConfigError::Ttl)
    }

    /// The longest TTL with which anybody takes the lock.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for one that is none, or below the lock's own.
    pub(super) fn max_ttl(&self) -> Result<Ttl, ConfigError> {
        let own = self.ttl()?;
        let Some(longest) = self.max_ttl else {
            return Ok(Ttl::new(DEFAULT_MAX_TTL).map_or(own, |longest| longest.max(own)));
        };
        match Ttl::new(longest) {
            Ok(longest) if longest >= own => Ok(longest),
            Err(_) if longest > MAX_TTL => {
                setting("max_ttl", longest, "it must be at most 2^53 ms")
            }
            _ => setting("max_ttl", longest, "it must be at least the lock's own TTL"),
        }
    }

    /// The request that these settings come to, in a box: many callers may wait.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for the first setting that cannot be used.
    pub(super) fn request(
        &self,
        how: How,
        wait: Wait,
        default_label: &HolderLabel,
    ) -> Result<Box<AcquireRequest>, ConfigError> {
        let ttl = self.ttl()?;
        let max_ttl = self.max_ttl()?;
        if let Some(longest) = self.max_hold
            && longest.is_zero()
        {
            return setting("max_hold", longest, "it must be above zero");
        }
        if let Some(least) = self.min_validity
            && least >= ttl.validity()
        {
            return setting(
                "min_validity",
                least,
                "it must be below the TTL less 1 % and 2 ms, the most a lease can have left",
            );
        }
        if let Some(limit) = self.node_limit
            && limit.is_zero()
        {
            return setting("node_limit", limit, "it must be above zero");
        }
        let yield_to_pollers = self.yield_to_pollers.map(NonZeroU32::new);
        if yield_to_pollers == Some(None) {
            return Err(ConfigError::Setting {
                setting: "yield_to_pollers",
                value: "0".to_owned(),
                bound: "it must be at least 1, once in so many hand-overs",
            });
        }
        let label = self.label.as_deref().map(HolderLabel::new).transpose();
        Ok(Box::new(AcquireRequest {
            key: self.key()?,
            how,
            settings: LeaseSettings { ttl, renewed: self.is_renewed(), max_hold: self.max_hold },
            wait,
            min_validity: self.min_validity,
            node_limit: self.node_limit,
            max_ttl,
            repair: self.repair,
            label: label.map_err(ConfigError::Label)?.unwrap_or_else(|| default_label.clone()),
            class: Class::clone(&self.class),
            yield_to_pollers: yield_to_pollers.flatten(),
        }))
    }
}

/// Others wait this long for a holder that died: long enough for a restart of the server.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// Unless somebody sets a longer one, nobody's is: the command's.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(30);
const MAX_TTL: Duration = Duration::from_millis(Ttl::MAX_MS);

fn setting<T>(
    setting: &'static str,
    value: Duration,
    bound: &'static str,
) -> Result<T, ConfigError> {
    Err(ConfigError::Setting { setting, value: format!("{value:?}"), bound })
}
