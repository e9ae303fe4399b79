//! What servers and others say is shown as words, and never as anything else.

mod errors;

use std::{error::Error, fmt::Write as _};

use tenure::{FENCED_SET, NodeErrorKind, Shown, blocking};
use tenure_testkit::{FakeAnswer, FakeServer, Server, ServerKind, Value};

use crate::{
    fake::{ScriptRequest, greet},
    ms,
};

/// Clears a screen, forges a line of a log, turns the text around, and hides some of it.
const ODD: &str =
    "\u{1b}[2J\u{1b}]0;title\u{7}\r\n2026-12-01 INFO all is well\u{202e}\u{200b}\u{85}";

const PASSWORD: &str = "hunter2-s3cret";

/// All that an error shows: itself, its causes, and their looks for programmers.
fn everything(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        _ = write!(text, " {error}");
        next = error.source();
    }
    text
}

/// A server that greets, and then answers each script by `answer`.
fn server(answer: impl Fn(&ScriptRequest) -> Vec<u8> + Clone + Send + 'static) -> FakeServer {
    FakeServer::unix(move |_| {
        let answer = answer.clone();
        move |command| {
            let asked =
                || ScriptRequest::read(&command).map(|asked| FakeAnswer::from(answer(&asked)));
            greet(&command, "run").or_else(asked).unwrap_or_else(|| "+OK\r\n".into())
        }
    })
}

/// An address with the password, of which nothing may be seen.
fn url(server: &FakeServer) -> String {
    server.url().replacen("redis+unix://", &format!("redis+unix://u:{PASSWORD}@"), 1)
}

fn assert_shown(text: &str) {
    assert!(text.chars().all(Shown::is_plain), "{text:?}");
    assert!(!text.to_lowercase().contains(PASSWORD), "{text}");
}

/// A blob error may have anything in it, a line end too.
fn blob_error(words: &str) -> Vec<u8> {
    format!("!{}\r\n{words}\r\n", words.len()).into_bytes()
}

#[test]
fn server_text_in_any_error_is_plain_and_without_the_password() {
    let words = format!("ERR {ODD} {PASSWORD} {}", PASSWORD.to_uppercase());
    let server = server(move |_| blob_error(&words));
    let client = blocking::Client::connect(&url(&server)).unwrap();
    let lock = client.lock("k").ttl(ms(10_000));
    let token = "00112233445566778899aabbccddeeff@me".parse().unwrap();
    let errors: [Box<dyn Error>; 6] = [
        lock.try_acquire().unwrap_err().into(),
        lock.steal().unwrap_err().into(),
        lock.release(&token).unwrap_err().into(),
        lock.resume(token).unwrap_err().into(),
        lock.inspect().unwrap_err().into(),
        lock.force_release().unwrap_err().into(),
    ];
    for error in errors {
        let text = everything(error.as_ref());
        assert_shown(&text);
        assert!(text.contains("***") && text.contains("INFO all is well"), "{text}");
    }
}

#[test]
fn server_text_in_a_greeting_is_plain_and_without_the_password() {
    let server = FakeServer::unix(|_| {
        |_| blob_error(&format!("WRONGPASS {ODD} 'AUTH' 'u' '{PASSWORD}'")).into()
    });
    let client = blocking::Client::connect(&url(&server)).unwrap();
    let error = client.lock("k").inspect().unwrap_err();
    assert_shown(&everything(&error));
    let nodes = client.lock("k").nodes().unwrap();
    let trouble = nodes[0].trouble.as_ref().unwrap();
    assert_eq!(trouble.kind(), NodeErrorKind::Denied);
    assert_shown(&everything(trouble));
}

#[test]
fn server_text_about_one_lease_of_a_batch_is_plain_and_without_the_password() {
    let server = server(|asked| match asked.script {
        "renew" => {
            let words = format!("ERR {ODD} {PASSWORD}");
            let number = &asked.number;
            let header = format!("*2\r\n${}\r\n{number}\r\n*2\r\n$5\r\nerror\r\n", number.len());
            format!("{header}${}\r\n{words}\r\n", words.len()).into_bytes()
        }
        "acquire" => asked.reply(&["granted", "7"]),
        _ => blob_error("ERR no"),
    });
    let client = blocking::Client::connect(&url(&server)).unwrap();
    let guard = client.lock("k").ttl(ms(10_000)).acquire().unwrap();
    let error = guard.extend(ms(10_000)).unwrap_err();
    let text = everything(&error);
    assert_shown(&text);
    assert!(text.contains("***"), "{text}");
}

#[test]
fn the_value_at_a_key_is_shown_as_plain_text() {
    let server = server(|asked| {
        let (number, odd) = (&asked.number, ODD);
        let from = "$1\r\n7\r\n$7\r\nprimary\r\n";
        let request = format!("*10\r\n${}\r\n{number}\r\n{from}", number.len());
        let fields = format!("{request}$0\r\n\r\n$0\r\n\r\n:0\r\n*0\r\n");
        format!("{fields}$4\r\ntype\r\n${}\r\n{odd}\r\n:-1\r\n", odd.len()).into_bytes()
    });
    let client = blocking::Client::connect(&url(&server)).unwrap();
    let inspection = client.lock("k").inspect().unwrap();
    let held = inspection.held.unwrap();
    assert_shown(&format!("{} {held:?}", held.holder));
}

#[test]
fn a_key_in_an_error_is_plain_text_of_bounded_length() {
    let client = blocking::Client::connect("memory://").unwrap();
    let key = ODD.repeat(1_000) + ":tenure:fence";
    let error = client.lock(&key).inspect().unwrap_err();
    let text = everything(&error);
    assert_shown(&text);
    assert!(text.len() < 8_000, "{}", text.len());
}

/// A reader of what a resource keeps could else release the lock.
#[test]
fn a_fenced_resource_stores_no_token() {
    let resource = Server::start(ServerKind::Redis70);
    let secret = "00112233445566778899aabbccddeeff";
    let write = |number: &str, token: &str| {
        resource.cmd(&["EVAL", FENCED_SET, "2", "stock", "stock:fence", number, token, "99"])
    };
    let (one, other) = (format!("{secret}@me"), format!("{secret}@you"));
    for (number, token, set) in
        [("7", &one, 1), ("7", &one, 1), ("7", &other, 0), ("6", &one, 0), ("8", &other, 1)]
    {
        assert_eq!(write(number, token), Value::Int(set), "{number} {token}");
    }
    let kept = format!("{:?}", resource.cmd(&["DUMP", "stock:fence"]));
    let fields = format!("{:?}", resource.cmd(&["HGETALL", "stock:fence"]));
    let secret_bytes = format!("{:?}", secret.as_bytes());
    let secret_bytes = secret_bytes.trim_matches(['[', ']']);
    for text in [kept, fields] {
        assert!(!text.contains(secret) && !text.contains(secret_bytes), "{text}");
    }
}
