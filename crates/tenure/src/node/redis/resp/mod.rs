//! RESP3: commands out, replies in.

mod decoder;

use bytes::{BufMut as _, BytesMut};
use tenure_core::script::Answer;

pub(super) use self::decoder::Decoder;

/// What a server sends.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A reply.
    Reply(Answer),
    /// An error reply, in the server's words.
    Error(String),
    /// The fields of a map reply whose names are strings.
    Map(Vec<(String, Answer)>),
    /// What a server sends unasked: its kind, and its strings.
    Push(Vec<Answer>),
}

/// The bytes are not RESP3.
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak RESP3: {0}")]
pub(super) struct NotResp(&'static str);

/// Appends a command: an array of strings.
pub(super) fn encode(out: &mut BytesMut, parts: &[&[u8]]) {
    let header = |out: &mut BytesMut, kind: u8, length: usize| {
        out.put_u8(kind);
        out.put_slice(length.to_string().as_bytes());
        out.put_slice(b"\r\n");
    };
    header(out, b'*', parts.len());
    for part in parts {
        header(out, b'$', part.len());
        out.put_slice(part);
        out.put_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = BytesMut::new();
        encode(&mut out, &[b"GET", b"a\r\n\0"]);
        assert_eq!(&out[..], b"*2\r\n$3\r\nGET\r\n$4\r\na\r\n\0\r\n");
    }
}
