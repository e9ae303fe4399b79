//! The wire format: RESP2 for what the testkit reads, and frame lengths of RESP3 for the proxy.

use std::io::{self, BufRead, Read};

use crate::Value;

/// A command as the array of bulks that every server accepts.
pub(crate) fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The next reply.
pub(crate) fn read_value(from: &mut impl BufRead) -> io::Result<Value> {
    let (kind, rest) = read_line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    match kind {
        b'+' => Ok(Value::Status(rest)),
        b'-' => Ok(Value::Error(rest)),
        b':' => Ok(Value::Int(number(&rest)?)),
        b'$' => match usize::try_from(number(&rest)?) {
            Ok(len) => read_bulk(from, len).map(Value::Bulk),
            Err(_) => Ok(Value::Nil),
        },
        b'*' => match usize::try_from(number(&rest)?) {
            Ok(len) => {
                (0..len).map(|_| read_value(from)).collect::<io::Result<_>>().map(Value::Array)
            }
            Err(_) => Ok(Value::Nil),
        },
        other => Err(malformed(&format!("a reply of kind {:?}", char::from(other)))),
    }
}

/// The next command of a client; `None` when it has closed the connection.
pub(crate) fn read_command(from: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    let Some((kind, rest)) = read_line(from)? else { return Ok(None) };
    if kind != b'*' {
        return Err(malformed("a command that is no array"));
    }
    let mut args = Vec::new();
    for _ in 0..number(&rest)? {
        let (kind, rest) = read_line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match usize::try_from(number(&rest)?) {
            Ok(len) if kind == b'$' => args.push(read_bulk(from, len)?),
            _ => return Err(malformed("an argument that is no bulk")),
        }
    }
    Ok(Some(args))
}

/// Length of the first whole frame in `bytes`, in RESP2 or RESP3; `None` while it is incomplete.
pub(crate) fn frame_len(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let head = bytes.get(1..line).and_then(|text| std::str::from_utf8(text).ok());
    // A length of -1 is nil, and "?" (a streamed aggregate) is never sent by these servers.
    let count = head.and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    let body = line + 2;
    let children = match bytes.first()? {
        b'$' | b'=' | b'!' if head != Some("-1") => {
            let end = body + count + 2;
            return (bytes.len() >= end).then_some(end);
        }
        b'*' | b'~' | b'>' => count,
        b'%' => 2 * count,
        // Attributes come before the reply they belong to.
        b'|' => 2 * count + 1,
        _ => 0,
    };
    let mut end = body;
    for _ in 0..children {
        end += frame_len(bytes.get(end..)?)?;
    }
    Some(end)
}

/// First byte and rest of the next line; `None` at the end of the stream.
fn read_line(from: &mut impl BufRead) -> io::Result<Option<(u8, String)>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    match line.as_slice() {
        [kind, rest @ .., b'\r', b'\n'] => {
            Ok(Some((*kind, String::from_utf8_lossy(rest).into_owned())))
        }
        [.., b'\n'] => Err(malformed("a line that does not end in CR LF")),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_bulk(from: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| malformed(&format!("{text:?} where a number belongs")))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{encode, frame_len, read_command, read_value};

    #[test]
    fn frames_are_measured_whole_and_not_before() {
        let frames: [&[u8]; 8] = [
            b"+OK\r\n",
            b"$-1\r\n",
            b"$0\r\n\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
            b"%1\r\n+k\r\n,1.5\r\n",
            b"|1\r\n+k\r\n:1\r\n_\r\n",
            b">3\r\n+message\r\n+c\r\n$2\r\nhi\r\n",
        ];
        for frame in frames {
            for cut in 0..frame.len() {
                assert_eq!(frame_len(&frame[..cut]), None, "{}", frame.escape_ascii());
            }
            let followed = [frame, b"+next\r\n"].concat();
            assert_eq!(frame_len(&followed), Some(frame.len()), "{}", frame.escape_ascii());
        }
    }

    #[test]
    fn commands_round_trip() {
        let mut wire: &[u8] = &encode(&[b"SET".as_slice(), b"k\r\n", b""]);
        let args = read_command(&mut wire).unwrap().unwrap();
        assert_eq!(args, [b"SET".as_slice(), b"k\r\n", b""]);
        assert!(read_command(&mut wire).unwrap().is_none());
    }

    #[test]
    fn replies_print_escaped() {
        let mut wire: &[u8] = b"*4\r\n$2\r\n\x00\n\r\n:-7\r\n$-1\r\n-ERR no\r\n";
        let value = read_value(&mut wire).unwrap();
        assert_eq!(format!("{value:?}"), r#"["\x00\n", -7, nil, -ERR no]"#);
    }
}
