//! What the users of other libraries ran into: one test per row of the list of peers.
//!
//! `p…` are reports from public trackers, `d…` defects found by running or reading two libraries.

mod expiry;
mod extending;
mod lost_replies;
mod outages;
mod races;
mod scripts;
mod unwanted;

use tenure_testkit::Answer;

/// A fake server's answer: grants and releases what is asked for in full, and refuses all that is
/// asked for by name.
fn answer(command: &[Vec<u8>], refusal: &str) -> Answer {
    if let Some(answer) = Answer::to_handshake(command) {
        return answer;
    }
    match command[0].as_slice() {
        b"EVALSHA" => refusal.into(),
        b"EVAL" => {
            // EVAL script 2 lock fence request token …
            let request = String::from_utf8(command[5].clone()).unwrap();
            let number = format!("*3\r\n${}\r\n{request}\r\n", request.len());
            let is_acquire = command.len() == 9;
            let rest =
                if is_acquire { "$7\r\ngranted\r\n$1\r\n7\r\n" } else { "$8\r\nreleased\r\n" };
            let token = String::from_utf8(command[6].clone()).unwrap();
            let token = format!("${}\r\n{token}\r\n", token.len());
            (number + rest + if is_acquire { "" } else { &token }).as_str().into()
        }
        _ => "-ERR unknown command\r\n".into(),
    }
}
