//! Fuzz targets: what others write, and what users do.

use tenure_testkit::fuzz;

use crate::{Channel, Holder, HolderLabel, LockKey, Notification, Shown, Token};

#[test]
fn fuzz_tokens() {
    fuzz("tokens", |input| {
        let holder = Holder::from_value(input);
        let token: Option<Token> = std::str::from_utf8(input).ok().and_then(|t| t.parse().ok());
        if let Some(token) = &token {
            assert_eq!(token.as_bytes(), input, "it is kept as it is");
            assert!(matches!(holder, Holder::Tenure(_)), "a token of ours is known as such");
        }
        assert!(holder.to_string().chars().all(Shown::is_plain));
        (token.is_some(), holder.is_foreign(), input.len().min(300) / 20)
    });
}

#[test]
fn fuzz_labels() {
    fuzz("labels", |input| {
        let Ok(text) = std::str::from_utf8(input) else { return (false, 0) };
        let Ok(label) = HolderLabel::new(text) else { return (true, 0) };
        // It is part of a token, behind the `@`, and is read from there.
        let token = Token::new(7, &label);
        assert_eq!(token.as_str().parse(), Ok(token.clone()));
        assert_eq!(Holder::from_value(token.as_bytes()), Holder::Tenure(label.clone()));
        assert!(label.to_string().chars().all(Shown::is_plain));
        (true, 1 + label.encoded().len())
    });
}

#[test]
fn fuzz_keys() {
    fuzz("keys", |input| {
        let Ok(key) = LockKey::new(input) else { return 0 };
        assert_eq!(key.as_bytes(), input);
        let derived = [key.fence(), key.queue()];
        // Nothing that is derived of one lock is the key of another.
        assert!(derived.iter().all(|derived| LockKey::new(derived).is_err()), "{derived:?}");
        assert_ne!(derived[0], derived[1]);
        assert!(key.to_string().chars().all(Shown::is_plain));
        1 + usize::from(key.has_slot_mates())
            + 2 * input.iter().filter(|b| b"{}".contains(b)).count()
    });
}

#[test]
fn fuzz_shown() {
    fuzz("shown", |input| {
        let [plain, quoted] = [Shown::new(input), Shown::quoted(input)].map(|s| s.to_string());
        assert!(plain.chars().chain(quoted.chars()).all(Shown::is_plain));
        (plain.len().min(600) / 8, quoted.matches('\\').count())
    });
}

#[test]
fn fuzz_wakes() {
    fuzz("wakes", |input| {
        let to = Channel::named("tenure:1");
        let notification =
            std::str::from_utf8(input).ok().and_then(|text| Notification::read(&to, text));
        if let Some(notification) = &notification {
            assert_eq!(Notification::read(&to, &notification.text()).as_ref(), Some(notification));
        }
        notification.map(|notification| std::mem::discriminant(&notification))
    });
}
