//! RESP3: commands out, replies in.

use bytes::{Buf as _, BufMut as _, BytesMut};
use tenure_core::script::Answer;

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

/// Takes the next complete reply off the front of `input`, if there is one.
pub(super) fn decode(input: &mut BytesMut) -> Result<Option<Incoming>, NotResp> {
    let mut reader = Reader { rest: input };
    match reader.incoming() {
        Ok(incoming) => {
            let read = input.len() - reader.rest.len();
            input.advance(read);
            Ok(Some(incoming))
        }
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::NotResp(what)) => Err(NotResp(what)),
    }
}

/// Why reading stopped.
enum Stop {
    /// More bytes are needed.
    Incomplete,
    NotResp(&'static str),
}

/// Reads from the front of a buffer, and leaves it as it was when a reply is not complete.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn incoming(&mut self) -> Result<Incoming, Stop> {
        loop {
            return match self.kind()? {
                b'-' => Ok(Incoming::Error(lossy(self.line()?))),
                b'!' => Ok(Incoming::Error(lossy(self.string()?))),
                b'%' => self.map().map(Incoming::Map),
                b'>' => self.values(MOST_NESTED).map(Incoming::Push),
                // Attributes describe the value behind them, and nothing here asks for any.
                b'|' => {
                    self.map()?;
                    continue;
                }
                kind => self.value(kind, MOST_NESTED).map(Incoming::Reply),
            };
        }
    }

    /// A value whose first byte has been read.
    fn value(&mut self, kind: u8, nested: usize) -> Result<Answer, Stop> {
        match kind {
            b'$' | b'=' if self.rest.starts_with(b"-1\r\n") => self.line().map(|_| Answer::Other),
            b'$' => self.string().map(|text| Answer::Bytes(text.to_vec())),
            // A verbatim string begins with three letters of its format and a colon.
            b'=' => {
                self.string().map(|text| Answer::Bytes(text.get(4..).unwrap_or_default().to_vec()))
            }
            b'+' => self.line().map(|text| Answer::Bytes(text.to_vec())),
            b':' => self.number().map(Answer::Int),
            b'*' if self.rest.starts_with(b"-1\r\n") => self.line().map(|_| Answer::Other),
            b'*' => self.values(nested).map(Answer::Array),
            b'~' => self.values(nested).map(|_| Answer::Other),
            b'%' => self.pairs(nested).map(|_| Answer::Other),
            b'_' | b',' | b'#' | b'(' | b'-' => self.line().map(|_| Answer::Other),
            b'!' => self.string().map(|_| Answer::Other),
            _ => Err(Stop::NotResp("a value of no known kind")),
        }
    }

    fn map(&mut self) -> Result<Vec<(String, Answer)>, Stop> {
        let pairs = self.pairs(MOST_NESTED)?.into_iter();
        let named = pairs.filter_map(|(name, value)| match name {
            Answer::Bytes(name) => Some((String::from_utf8(name).ok()?, value)),
            _ => None,
        });
        Ok(named.collect())
    }

    fn pairs(&mut self, nested: usize) -> Result<Vec<(Answer, Answer)>, Stop> {
        let count = self.count()?;
        (0..count).map(|_| Ok((self.nested(nested)?, self.nested(nested)?))).collect()
    }

    fn values(&mut self, nested: usize) -> Result<Vec<Answer>, Stop> {
        let count = self.count()?;
        (0..count).map(|_| self.nested(nested)).collect()
    }

    fn nested(&mut self, nested: usize) -> Result<Answer, Stop> {
        let deeper = nested.checked_sub(1).ok_or(Stop::NotResp("values nested too deep"))?;
        let kind = self.kind()?;
        self.value(kind, deeper)
    }

    fn kind(&mut self) -> Result<u8, Stop> {
        let (kind, rest) = self.rest.split_first().ok_or(Stop::Incomplete)?;
        self.rest = rest;
        Ok(*kind)
    }

    /// A string that its length comes before.
    fn string(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.count()?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Stop::Incomplete)?;
        match rest.split_at_checked(2) {
            Some((b"\r\n", rest)) => {
                self.rest = rest;
                Ok(text)
            }
            Some(_) => Err(Stop::NotResp("a string longer than it said")),
            None => Err(Stop::Incomplete),
        }
    }

    fn count(&mut self) -> Result<usize, Stop> {
        let count = self.number()?;
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST);
        count.ok_or(Stop::NotResp("a length below zero, or too long"))
    }

    fn number(&mut self) -> Result<i64, Stop> {
        let digits = std::str::from_utf8(self.line()?).ok();
        digits.and_then(|digits| digits.parse().ok()).ok_or(Stop::NotResp("a number of no digits"))
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let end = self.rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::Incomplete)?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(2..).unwrap_or_default();
        Ok(line)
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A server's longest string is 512 MiB.
const MOST: usize = 512 * 1024 * 1024;

/// Scripts reply with arrays in an array; a server's own replies go a little deeper.
const MOST_NESTED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = BytesMut::new();
        encode(&mut out, &[b"GET", b"a\r\n\0"]);
        assert_eq!(&out[..], b"*2\r\n$3\r\nGET\r\n$4\r\na\r\n\0\r\n");
    }

    /// Everything that is read of these bytes, which come in pieces of this size.
    fn read(bytes: &[u8], piece: usize) -> String {
        let mut input = BytesMut::new();
        let mut seen = Vec::new();
        for piece in bytes.chunks(piece) {
            input.extend_from_slice(piece);
            while let Some(incoming) = decode(&mut input).unwrap() {
                seen.push(format!("{incoming:?}"));
            }
        }
        assert!(input.is_empty());
        seen.join(" ")
    }

    #[test]
    fn every_kind_of_reply_is_read_whole_or_in_pieces() {
        for (bytes, means) in [
            ("*3\r\n$1\r\n7\r\n:-1\r\n_\r\n", "Reply(Array([Bytes([55]), Int(-1), Other]))"),
            ("$4\r\na\r\nb\r\n", "Reply(Bytes([97, 13, 10, 98]))"),
            ("$0\r\n\r\n+\r\n", "Reply(Bytes([])) Reply(Bytes([]))"),
            ("$-1\r\n*-1\r\n", "Reply(Other) Reply(Other)"),
            ("=5\r\ntxt:x\r\n", "Reply(Bytes([120]))"),
            (
                ",1.5\r\n#t\r\n(12\r\n~1\r\n:1\r\n",
                "Reply(Other) Reply(Other) Reply(Other) Reply(Other)",
            ),
            ("-NOSCRIPT No matching\r\n", "Error(\"NOSCRIPT No matching\")"),
            ("!5\r\nERR x\r\n", "Error(\"ERR x\")"),
            (
                ">2\r\n+message\r\n*1\r\n+x\r\n",
                "Push([Bytes([109, 101, 115, 115, 97, 103, 101]), Array([Bytes([120])])])",
            ),
            ("|1\r\n+a\r\n:1\r\n:2\r\n", "Reply(Int(2))"),
            ("%2\r\n+id\r\n:9\r\n:1\r\n*1\r\n-no\r\n", "Map([(\"id\", Int(9))])"),
        ] {
            for piece in [1, 3, bytes.len()] {
                assert_eq!(read(bytes.as_bytes(), piece), means, "{bytes:?} by {piece}");
            }
        }
    }

    #[test]
    fn other_protocols_are_told() {
        let deep = "*1\r\n".repeat(20) + ":1\r\n";
        for bytes in ["HTTP/1.1 400 Bad Request\r\n", "$-2\r\n", "$1\r\nabc", ":x\r\n", &deep] {
            assert!(decode(&mut BytesMut::from(bytes)).is_err(), "{bytes}");
        }
        let huge = format!("${}\r\n", MOST + 1);
        assert!(decode(&mut BytesMut::from(&huge[..])).is_err());
    }
}
