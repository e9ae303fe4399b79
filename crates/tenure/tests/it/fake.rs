//! What a fake server must know of the protocol: which script a client requests.

use tenure_core::script;
use tenure_testkit::FakeAnswer;

/// What the names of scripts begin with that check the server's marker.
const CHECKED: &str = "checked ";

/// A request to run a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptRequest {
    pub(crate) script: &'static str,
    /// The server is asked whether it may vote, too.
    is_checked: bool,
    pub(crate) number: String,
    /// The token of an acquisition or a release.
    pub(crate) token: String,
}

impl ScriptRequest {
    /// Reads a command; `None` if it runs no script.
    pub(crate) fn read(command: &[Vec<u8>]) -> Option<Self> {
        let text = |at: usize| Some(String::from_utf8_lossy(command.get(at)?).into_owned());
        if !text(0)?.starts_with("EVAL") {
            return None;
        }
        let named = text(1)?;
        let script = script::ALL.iter().find(|s| s.text == named || s.sha1 == named)?;
        let keys: usize = text(2)?.parse().ok()?;
        Some(Self {
            script: script.name.trim_start_matches(CHECKED),
            is_checked: script.name.starts_with(CHECKED),
            number: text(3 + keys)?,
            token: text(4 + keys).unwrap_or_default(),
        })
    }

    /// The reply with these fields behind the request's number, of a server that may vote.
    pub(crate) fn reply(&self, fields: &[&str]) -> Vec<u8> {
        let vote: &[&str] = if self.is_checked { &["eligible", ""] } else { &[] };
        let mut reply = format!("*{}\r\n", 1 + fields.len() + vote.len());
        for field in [self.number.as_str()].iter().chain(fields).chain(vote) {
            reply += &format!("${}\r\n{field}\r\n", field.len());
        }
        reply.into_bytes()
    }

    /// What a sound server answers.
    pub(crate) fn obeyed(&self) -> FakeAnswer {
        match self.script {
            "release" => self.reply(&["released", &self.token, "nobody"]),
            "acquire" => self.reply(&["granted", "7"]),
            "clock" => self.reply(&["1800000000000000"]),
            other => panic!("the test asks for no {other}"),
        }
        .into()
    }

    pub(crate) fn is(&self, script: &str, token: &str) -> bool {
        self.script == script && self.token == token
    }
}

/// Answers the first commands of a connection, as a server of this run.
pub(crate) fn greet(command: &[Vec<u8>], run: &str) -> Option<FakeAnswer> {
    if command.first()? == b"INFO" {
        let info = format!("# Server\r\nredis_version:7.0.15\r\nrun_id:{run}\r\n");
        return Some(format!("${}\r\n{info}\r\n", info.len()).as_str().into());
    }
    if is_kill(command) {
        return Some(":1\r\n".into());
    }
    if is_proof(command) {
        return Some(proven(&command[3]));
    }
    FakeAnswer::to_handshake(command)
}

/// Greets and obeys.
pub(crate) fn obey(command: &[Vec<u8>]) -> FakeAnswer {
    let asked = || ScriptRequest::read(command).expect("a greeting or a script").obeyed();
    greet(command, "run").unwrap_or_else(asked)
}

/// Its channel receives the message, and no other does.
fn proven(channel: &[u8]) -> FakeAnswer {
    let mut said = format!(">3\r\n$7\r\nmessage\r\n${}\r\n", channel.len()).into_bytes();
    said.extend_from_slice(channel);
    said.extend_from_slice(b"\r\n$0\r\n\r\n*2\r\n:1\r\n:0\r\n");
    said.into()
}

/// The script by which a client verifies that messages reach it: it counts the receivers.
fn is_proof(command: &[Vec<u8>]) -> bool {
    let is_script = ScriptRequest::read(command).is_some();
    command.len() == 4 && command[0] == b"EVAL" && command[2] == b"0" && !is_script
}

pub(crate) fn is_kill(command: &[Vec<u8>]) -> bool {
    command.len() == 4 && command[..3] == [&b"CLIENT"[..], b"KILL", b"ID"]
}

/// Every script that was asked for so far.
pub(crate) fn asked(commands: &[Vec<Vec<u8>>]) -> Vec<ScriptRequest> {
    commands.iter().filter_map(|command| ScriptRequest::read(command)).collect()
}
