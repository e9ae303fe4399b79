//! RESP3: commands out, replies in.

use bytes::{BufMut as _, BytesMut};
use redis_protocol::resp3::{decode::complete::decode_bytes_mut, types::BytesFrame};
use tenure_core::script::Answer;

/// What a server sends.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A reply.
    Reply(Answer),
    /// An error reply, in the server's words.
    Error(String),
    /// The fields of a map reply, as far as they are strings or integers.
    Map(Vec<(String, Answer)>),
    /// What a server sends unasked: its kind, and its strings.
    Push(Vec<Answer>),
}

/// The bytes are not RESP3.
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak RESP3: {0}")]
pub(super) struct NotResp(String);

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

/// Takes the next complete reply off the front of `input`, if there is one.
pub(super) fn decode(input: &mut BytesMut) -> Result<Option<Incoming>, NotResp> {
    match decode_bytes_mut(input) {
        Ok(Some((frame, _length, _bytes))) => Ok(Some(incoming(frame))),
        Ok(None) => Ok(None),
        Err(error) => Err(NotResp(error.to_string())),
    }
}

fn incoming(frame: BytesFrame) -> Incoming {
    match frame {
        BytesFrame::Push { data, .. } => Incoming::Push(data.into_iter().map(answer).collect()),
        BytesFrame::SimpleError { data, .. } => Incoming::Error(data.to_string()),
        BytesFrame::BlobError { data, .. } => {
            Incoming::Error(String::from_utf8_lossy(&data).into_owned())
        }
        BytesFrame::Map { data, .. } => Incoming::Map(
            data.into_iter()
                .filter_map(|(name, value)| match answer(name) {
                    Answer::Bytes(name) => Some((String::from_utf8(name).ok()?, answer(value))),
                    _ => None,
                })
                .collect(),
        ),
        frame => Incoming::Reply(answer(frame)),
    }
}

fn answer(frame: BytesFrame) -> Answer {
    match frame {
        BytesFrame::Number { data, .. } => Answer::Int(data),
        BytesFrame::BlobString { data, .. }
        | BytesFrame::SimpleString { data, .. }
        | BytesFrame::VerbatimString { data, .. } => Answer::Bytes(data.to_vec()),
        BytesFrame::Array { data, .. } => Answer::Array(data.into_iter().map(answer).collect()),
        _ => Answer::Other,
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

    #[test]
    fn replies_may_come_in_pieces() {
        let whole = b"*3\r\n$1\r\n7\r\n:-1\r\n_\r\n>2\r\n+m\r\n+x\r\n-NOSCRIPT No matching\r\n";
        let mut input = BytesMut::new();
        let mut seen = Vec::new();
        for byte in whole {
            input.extend_from_slice(&[*byte]);
            seen.extend(decode(&mut input).unwrap());
        }
        assert_eq!(
            format!("{seen:?}"),
            "[Reply(Array([Bytes([55]), Int(-1), Other])), Push([Bytes([109]), Bytes([120])]), Error(\"NOSCRIPT No matching\")]"
        );
    }

    #[test]
    fn other_protocols_are_told() {
        let mut input = BytesMut::from(&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]);
        assert!(decode(&mut input).is_err());
    }
}
