//! An error is one line that is complete: what failed, which lock, which server, why, what to try.

use std::error::Error;

use tenure::blocking;
use tenure_testkit::FakeServer;

use super::{blob_error, server};
use crate::ms;

/// Demands of an error one line that has all of this, and no source that repeats a part of it.
fn assert_complete(error: &(dyn Error + 'static), parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text:?}");
    }
    assert!(!text.contains('\n'), "{text:?}");
    let mut source = error.source();
    while let Some(behind) = source {
        assert!(!text.contains(&behind.to_string()), "{behind} is repeated in {text}");
        source = behind.source();
    }
}

const TOKEN: &str = "00112233445566778899aabbccddeeff@me";

/// A server that grants each lock, and refuses all else.
fn grants_only() -> FakeServer {
    server(|asked| match asked.script {
        "acquire" => asked.reply(&["granted", "7"]),
        _ => blob_error("ERR no such luck"),
    })
}

/// Nobody listens at the other addresses.
#[test]
fn an_error_names_the_lock_the_server_and_the_cause_in_one_line() {
    let server = server(|_| blob_error("ERR no such luck"));
    let client = blocking::Client::connect(&server.url()).unwrap();
    let path = server.url().replace("redis+unix://", "");
    let lock = client.lock("order \"7\"").ttl(ms(10_000));
    let token = || TOKEN.parse().unwrap();
    let errors: [(&str, Box<dyn Error>); 7] = [
        ("acquiring", lock.try_acquire().unwrap_err().into()),
        ("acquiring", lock.steal().unwrap_err().into()),
        ("acquiring", lock.resume(token()).unwrap_err().into()),
        ("releasing", lock.release(&token()).unwrap_err().into()),
        ("asking about", lock.inspect().unwrap_err().into()),
        ("asking about", lock.force_release().unwrap_err().into()),
        ("did not begin: acquiring", lock.run(|_| ()).unwrap_err().into()),
    ];
    for (doing, error) in errors {
        let parts = [doing, "\"order \\\"7\\\"\"", path.as_str(), "ERR no such luck"];
        assert_complete(error.as_ref(), &parts);
    }
    let several = format!("{},redis://127.0.0.1:1,redis://127.0.0.1:2", server.url());
    let client = blocking::Client::connect(&several).unwrap();
    let error = client.lock("order:7").ttl(ms(10_000)).try_acquire().unwrap_err();
    let each = ["no such luck", "127.0.0.1:1 cannot", "127.0.0.1:2 cannot", "refused"];
    assert_complete(&error, &[&["\"order:7\"", "is it up"][..], &each].concat());
}

#[test]
fn contention_names_the_lock_and_its_holder() {
    let client = blocking::Client::connect("memory://").unwrap();
    let _guard = client.lock("order:7").label("night shift").acquire().unwrap();
    let error = client.lock("order:7").acquire_within(ms(0)).unwrap_err();
    assert_complete(&error, &["acquiring \"order:7\"", "night shift", "wait longer"]);
}

#[test]
fn a_second_release_names_the_lock_and_is_no_loss() {
    let client = blocking::Client::connect("memory://").unwrap();
    let lock = client.lock("order:7");
    let token = lock.acquire().unwrap().detach();
    lock.release(&token).unwrap();
    let error = lock.release(&token).unwrap_err();
    assert_complete(&error, &["releasing \"order:7\"", "already released"]);
    assert!(!error.to_string().contains("not held"), "{error}");
}

#[test]
fn an_unconfirmed_operation_names_the_lock() {
    let server = grants_only();
    let client = blocking::Client::connect(&server.url()).unwrap();
    let path = server.url().replace("redis+unix://", "");
    let guard = client.lock("order:7").ttl(ms(10_000)).acquire().unwrap();
    let errors: [(&str, Box<dyn Error>); 3] = [
        ("confirmation of extending", guard.extend(ms(10_000)).unwrap_err().into()),
        ("proof of holding", guard.revalidate().unwrap_err().into()),
        ("confirmation of releasing", guard.release().unwrap_err().into()),
    ];
    for (what, error) in errors {
        assert_complete(error.as_ref(), &[what, "\"order:7\"", &path, "no such luck"]);
    }
    let done = client.lock("order:8").ttl(ms(10_000)).run(|_| ()).unwrap_err();
    assert_complete(&done, &["the work is done", "releasing \"order:8\"", &path, "no such luck"]);
}

#[test]
fn a_loss_names_the_lock_the_reason_and_what_to_try() {
    let client = blocking::Client::connect("memory://").unwrap();
    let lock = client.lock("order:7");
    let held = || {
        let guard = lock.acquire().unwrap();
        lock.force_release().unwrap();
        guard
    };
    let errors: [Box<dyn Error>; 5] = [
        held().extend(ms(10_000)).unwrap_err().into(),
        held().revalidate().unwrap_err().into(),
        held().release().unwrap_err().into(),
        lock.release(&TOKEN.parse().unwrap()).unwrap_err().into(),
        lock.run(|_| drop(lock.force_release())).unwrap_err().into(),
    ];
    for error in errors {
        let parts = ["\"order:7\" is not held any more", "the key is gone", "fencing tokens"];
        assert_complete(error.as_ref(), &parts);
    }
    let guard = client.lock("order:8").ttl(ms(100)).max_hold(ms(1)).acquire().unwrap();
    _ = guard.lost();
    let error = guard.ensure_held().unwrap_err();
    assert_complete(&error, &["\"order:8\"", "longest time allowed", "max_hold"]);
}

/// What the servers said last is why the lease ran out.
#[test]
fn a_loss_by_renewals_that_fail_names_the_server_and_what_it_said() {
    let server = grants_only();
    let client = blocking::Client::connect(&server.url()).unwrap();
    let path = server.url().replace("redis+unix://", "");
    let lock = client.lock("order:7").ttl(ms(200));
    let guard = lock.acquire().unwrap();
    _ = guard.lost();
    let ran = lock.run(|lease| while lease.ensure_held().is_ok() {}).unwrap_err();
    let errors: [Box<dyn Error>; 3] = [
        guard.ensure_held().unwrap_err().into(),
        guard.extend(ms(200)).unwrap_err().into(),
        ran.into(),
    ];
    for error in errors {
        let parts = ["\"order:7\"", "ran out", "renewals failed", &path, "no such luck"];
        assert_complete(error.as_ref(), &parts);
    }
}

#[test]
fn bad_input_names_the_lock_the_value_and_the_bound() {
    let client = blocking::Client::connect("memory://").unwrap();
    let lock = client.lock("order:7").ttl(ms(5));
    let guard = client.lock("order:8").acquire().unwrap();
    let errors: [(&str, &str, Box<dyn Error>); 6] = [
        ("acquiring \"order:7\"", "5ms", lock.try_acquire().unwrap_err().into()),
        ("acquiring \"order:7\"", "5ms", lock.steal().unwrap_err().into()),
        ("acquiring \"order:7\"", "5ms", lock.resume(TOKEN.parse().unwrap()).unwrap_err().into()),
        ("acquiring \"order:7\"", "5ms", lock.run(|_| ()).unwrap_err().into()),
        ("asking about \"order:7\"", "5ms", lock.nodes().unwrap_err().into()),
        ("extending \"order:8\"", "1ms", guard.extend(ms(1)).unwrap_err().into()),
    ];
    for (doing, value, error) in errors {
        assert_complete(error.as_ref(), &[doing, value, "least"]);
    }
    let nameless = client.lock("");
    let errors: [Box<dyn Error>; 4] = [
        nameless.try_acquire().unwrap_err().into(),
        nameless.release(&TOKEN.parse().unwrap()).unwrap_err().into(),
        nameless.inspect().unwrap_err().into(),
        nameless.force_release().unwrap_err().into(),
    ];
    for error in errors {
        assert_complete(error.as_ref(), &["a lock: ", "key", "empty"]);
    }
}

#[test]
fn a_client_that_has_stopped_names_the_lock_and_what_to_try() {
    let client = blocking::Client::connect("memory://").unwrap();
    let lock = client.lock("order:7");
    let guard = lock.acquire().unwrap();
    client.close().unwrap();
    let token = || TOKEN.parse().unwrap();
    let lost = guard.ensure_held().unwrap_err();
    assert_complete(&lost, &["\"order:7\"", "engine stopped", "new client"]);
    let errors: [(&str, Box<dyn Error>); 10] = [
        ("acquiring", lock.try_acquire().unwrap_err().into()),
        ("acquiring", lock.steal().unwrap_err().into()),
        ("acquiring", lock.resume(token()).unwrap_err().into()),
        ("acquiring", lock.run(|_| ()).unwrap_err().into()),
        ("asking about", lock.inspect().unwrap_err().into()),
        ("asking about", lock.force_release().unwrap_err().into()),
        ("asking about", lock.nodes().unwrap_err().into()),
        ("extending", guard.extend(ms(10_000)).unwrap_err().into()),
        ("revalidating", guard.revalidate().unwrap_err().into()),
        ("releasing", guard.release().unwrap_err().into()),
    ];
    for (doing, error) in errors {
        let parts = [&format!("{doing} \"order:7\""), "engine has stopped", "make a new client"];
        assert_complete(error.as_ref(), &parts);
    }
    let error = lock.release(&token()).unwrap_err();
    assert_complete(&error, &["releasing \"order:7\"", "engine has stopped"]);
}
