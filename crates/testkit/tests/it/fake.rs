//! The server that replies as its test wants.

use tenure_testkit::{FakeAnswer, FakeServer, Raw, Value, eventually};

use crate::LIMIT;

#[test]
fn each_connection_has_a_script_of_its_own() {
    let start = |tcp: bool| {
        let connect = |connection: usize| {
            let mut calls = 0;
            move |command: Vec<Vec<u8>>| {
                calls += 1;
                match command[0].as_slice() {
                    b"BYE" => FakeAnswer::SendAndClose(b"+bye\r\n".to_vec()),
                    b"DIE" => FakeAnswer::Close,
                    _ => FakeAnswer::to_handshake(&command).unwrap_or_else(|| {
                        format!("*2\r\n:{connection}\r\n:{calls}\r\n").as_str().into()
                    }),
                }
            }
        };
        if tcp { FakeServer::tcp(connect) } else { FakeServer::unix(connect) }
    };
    for fake in [start(false), start(true)] {
        let mut first = Raw::connect(fake.address());
        assert_eq!(first.cmd(&["A"]), Value::Array(vec![Value::Int(0), Value::Int(1)]));
        assert_eq!(first.cmd(&["B"]), Value::Array(vec![Value::Int(0), Value::Int(2)]));
        let mut second = Raw::connect(fake.address());
        assert_eq!(second.cmd(&["C"]), Value::Array(vec![Value::Int(1), Value::Int(1)]));
        assert_eq!(second.cmd(&["ping"]).text(), Some("PONG"));
        assert_eq!(second.cmd(&["HELLO"]).array().len(), 14);

        fake.push(b"+unasked\r\n");
        assert_eq!(first.receive().text(), Some("unasked"));
        assert_eq!(second.receive().text(), Some("unasked"));

        assert_eq!(first.cmd(&["BYE"]).text(), Some("bye"));
        assert!(first.try_receive().is_err());
        assert!(second.try_cmd(&["DIE"]).is_err());
        assert_eq!(fake.accepted(), 2);
        assert_eq!(fake.commands().len(), 7);
        assert_eq!(fake.commands()[2], [b"C".to_vec()]);
    }
}

#[test]
fn a_cut_closes_and_a_drop_ends_it() {
    let fake = FakeServer::tcp(|_| |_| FakeAnswer::from("+OK\r\n"));
    let address = fake.address().clone();
    let mut raw = Raw::connect(&address);
    assert!(raw.cmd(&["X"]).is_ok());
    fake.cut();
    assert!(raw.try_receive().is_err());
    drop(fake);
    eventually(LIMIT, "nobody listens any more", || Raw::try_connect(&address).is_err());
}
