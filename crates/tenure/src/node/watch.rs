//! Keys whose changes by others are reported.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    fmt,
    rc::{Rc, Weak},
};

use tenure_core::{LockKey, Token};

/// A request to be notified, once, when a key holds something else than it should.
///
/// It is an accelerator: where a node watches nothing, or a message is lost, our own clocks are the
/// first to notice.
pub(crate) struct Watch {
    key: LockKey,
    /// What should stand there; without it, anything.
    token: Option<Token>,
    callback: Cell<Option<Box<dyn FnOnce()>>>,
}

impl Watch {
    /// Calls `callback` when the key holds something else than the token; without a token, when
    /// there is no key.
    pub(crate) fn new(
        key: LockKey,
        token: Option<Token>,
        callback: impl FnOnce() + 'static,
    ) -> Rc<Self> {
        Rc::new(Self { key, token, callback: Cell::new(Some(Box::new(callback))) })
    }

    fn notify(&self) {
        if let Some(callback) = self.callback.take() {
            callback();
        }
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.key
    }

    fn is_as_wanted(&self, value: Option<&[u8]>) -> bool {
        match (&self.token, value) {
            (Some(token), Some(value)) => token.as_bytes() == value,
            (None, value) => value.is_some(),
            (Some(_), None) => false,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Whether a node reports changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It does, as far as it knows.
    Yes,
    /// It has enough to watch.
    Full,
    /// It never does.
    Never,
}

/// The watches of one node, by their keys.
#[derive(Debug, Default)]
pub(super) struct Watches(RefCell<HashMap<Key, Vec<Weak<Watch>>>>);

type Key = Box<[u8]>;

impl Watches {
    /// Adds one, unless there are too many. Returns whether it did.
    pub(super) fn add(&self, watch: &Rc<Watch>) -> bool {
        let mut by_key = self.0.borrow_mut();
        if by_key.len() >= MAX {
            by_key.retain(|_, watches| watches.iter().any(|watch| watch.strong_count() > 0));
        }
        if by_key.len() >= MAX {
            return false;
        }
        let watches = by_key.entry(watch.key.as_bytes().into()).or_default();
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Rc::downgrade(watch));
        true
    }

    /// Whether this key is watched.
    pub(super) fn has(&self, key: &LockKey) -> bool {
        let by_key = self.0.borrow();
        let watches = by_key.get(key.as_bytes());
        watches.is_some_and(|watches| watches.iter().any(|watch| watch.strong_count() > 0))
    }

    /// Every watched key.
    pub(super) fn keys(&self) -> Vec<LockKey> {
        self.all_alive().iter().map(|watch| watch.key.clone()).collect()
    }

    /// The key that was changed, if it is watched.
    pub(super) fn changed(&self, key: &[u8]) -> Option<LockKey> {
        self.alive(key).first().map(|watch| watch.key.clone())
    }

    /// There will be no notifications any more: all poll by themselves.
    pub(super) fn give_up(&self) {
        self.all_alive().iter().for_each(|watch| watch.notify());
    }

    /// What stands at a key was read.
    pub(super) fn seen(&self, key: &LockKey, value: Option<&[u8]>) {
        let alive = self.alive(key.as_bytes());
        alive.iter().filter(|watch| !watch.is_as_wanted(value)).for_each(|watch| watch.notify());
    }

    /// Not borrowed while they are notified: that may add others.
    fn alive(&self, key: &[u8]) -> Vec<Rc<Watch>> {
        self.0.borrow().get(key).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    fn all_alive(&self) -> Vec<Rc<Watch>> {
        self.0.borrow().values().flatten().filter_map(Weak::upgrade).collect()
    }
}

/// Each costs two small commands per renewal, and a server that holds 100 000 of our leases has
/// better things to do.
const MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_watcher_gets_nothing_and_makes_room() {
        let watches = Watches::default();
        let notified = Rc::new(Cell::new(0));
        let watch = |n: usize| {
            let notified = Rc::clone(&notified);
            let key = LockKey::new(format!("k{n}")).unwrap();
            Watch::new(key, None, move || notified.set(notified.get() + 1))
        };
        let all: Vec<_> = (0..MAX).map(watch).collect();
        assert!(all.iter().all(|watch| watches.add(watch)));
        let more = watch(MAX);
        assert!(!watches.add(&more));
        assert_eq!(watches.changed(b"k7").as_ref(), Some(&all[7].key));
        assert_eq!(watches.changed(b"another"), None);
        watches.seen(&all[7].key, Some(b"anything"));
        assert_eq!(notified.get(), 0);
        for _ in 0..2 {
            watches.seen(&all[7].key, None);
            assert_eq!(notified.get(), 1, "once");
        }
        watches.give_up();
        assert_eq!(notified.get(), MAX);
        drop(all);
        assert!(watches.add(&more) && watches.has(&more.key));
        assert_eq!(watches.keys(), std::slice::from_ref(&more.key));
        watches.seen(&more.key, Some(b"anything"));
        watches.seen(&more.key, None);
        assert_eq!(notified.get(), 1 + MAX);
    }

    #[test]
    fn a_token_is_wanted_where_it_was_put() {
        let token = Token::new(7, &tenure_core::HolderLabel::new("h").unwrap());
        let watch = Watch::new(LockKey::new("k").unwrap(), Some(token.clone()), || {});
        assert!(watch.is_as_wanted(Some(token.as_bytes())));
        assert!(!watch.is_as_wanted(Some(b"other")) && !watch.is_as_wanted(None));
    }
}
