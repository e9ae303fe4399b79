//! What is read of which bytes.

use super::*;

/// Everything that is read of these bytes, which come in pieces of this size.
fn read(bytes: &[u8], piece: usize) -> Result<String, NotResp> {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let mut seen = Vec::new();
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        while let Some(incoming) = decoder.next(&mut input)? {
            seen.push(format!("{incoming:?}"));
        }
    }
    assert!(input.is_empty() && decoder.levels.is_empty() && decoder.string.is_none());
    Ok(seen.join(" "))
}

#[test]
fn every_kind_of_reply_is_read_whole_or_in_pieces() {
    for (bytes, means) in [
        ("*3\r\n$1\r\n7\r\n:-1\r\n_\r\n", "Reply(Array([Bytes([55]), Int(-1), Other]))"),
        ("$4\r\na\r\nb\r\n", "Reply(Bytes([97, 13, 10, 98]))"),
        ("$0\r\n\r\n+\r\n", "Reply(Bytes([])) Reply(Bytes([]))"),
        ("$-1\r\n*-1\r\n", "Reply(Other) Reply(Other)"),
        ("*0\r\n>0\r\n%0\r\n", "Reply(Array([])) Push([]) Map([])"),
        ("=5\r\ntxt:x\r\n", "Reply(Bytes([120]))"),
        (
            ",1.5\r\n#t\r\n(12\r\n~1\r\n:1\r\n",
            "Reply(Other) Reply(Other) Reply(Other) Reply(Other)",
        ),
        ("-NOSCRIPT No matching\r\n", "Error(\"NOSCRIPT No matching\")"),
        ("!5\r\nERR x\r\n", "Error(\"ERR x\")"),
        ("+a\nb\r\n", "Reply(Bytes([97, 10, 98]))"),
        (
            ">2\r\n+message\r\n*1\r\n+x\r\n",
            "Push([Bytes([109, 101, 115, 115, 97, 103, 101]), Array([Bytes([120])])])",
        ),
        ("|1\r\n+a\r\n:1\r\n:2\r\n", "Reply(Int(2))"),
        ("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:2\r\n|0\r\n:3\r\n", "Reply(Array([Int(2), Int(3)]))"),
        ("%2\r\n+id\r\n:9\r\n:1\r\n*1\r\n-no\r\n", "Map([(\"id\", Int(9))])"),
        ("*2\r\n%1\r\n$1\r\na\r\n=5\r\ntxt:x\r\n:4\r\n", "Reply(Array([Other, Int(4)]))"),
        ("*1\r\n~2\r\n*1\r\n$2\r\nab\r\n_\r\n", "Reply(Array([Other]))"),
    ] {
        for piece in 1..=bytes.len() {
            assert_eq!(read(bytes.as_bytes(), piece).unwrap(), means, "{bytes:?} by {piece}");
        }
    }
}

#[test]
fn what_is_not_resp_is_refused() {
    let deep = "*1\r\n".repeat(20) + ":1\r\n";
    for bytes in [
        "HTTP/1.1 400 Bad Request\r\n",
        "\r\n",
        "$-2\r\n",
        "$+1\r\na\r\n",
        "$1\r\nabc",
        "*?\r\n",
        "$?\r\n",
        ":x\r\n",
        "%-1\r\n",
        "_x\r\n",
        "#y\r\n",
        "=3\r\nabc\r\n",
        "*1\r\n>1\r\n+x\r\n",
        &deep,
    ] {
        for piece in [1, bytes.len()] {
            assert!(read(bytes.as_bytes(), piece).is_err(), "{bytes:?} by {piece}");
        }
    }
}

/// At the header: nothing that was announced is waited for.
#[test]
fn a_reply_that_fits_no_request_is_refused_at_once() {
    for kind in "*~%|>".chars() {
        for count in ["1025", "536870912", "9223372036854775807", "18446744073709551615"] {
            let header = format!("{kind}{count}\r\n");
            assert!(read(header.as_bytes(), 3).is_err(), "{header:?}");
        }
    }
    for kind in "$=!".chars() {
        assert!(read(format!("{kind}536870913\r\n").as_bytes(), 3).is_err());
    }
    let many = "|0\r\n".repeat(2_000);
    assert!(read(many.as_bytes(), 1_000).is_err(), "attributes without an end");
    let many = "*1000\r\n".to_owned() + &"*1\r\n:1\r\n".repeat(1_000);
    assert!(read(many.as_bytes(), 1_000).is_err(), "elements inside elements");
    for line in ["+", "-", ":1", "$1", ",1"] {
        let endless = line.to_owned() + &"1".repeat(20_000);
        assert!(read(endless.as_bytes(), 999).is_err(), "{line}");
    }
}

/// Not even their beginnings grow beyond the bound together.
#[test]
fn only_the_beginning_of_a_long_string_is_kept() {
    let long = format!("$100000\r\n{}\r\n", "x".repeat(100_000));
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::from(&long[..]));
    let Some(Incoming::Reply(Answer::Bytes(kept))) = decoder.next(&mut input).unwrap() else {
        panic!("a string");
    };
    assert_eq!(kept, "x".repeat(KEPT_OF_ONE).as_bytes());
    input.extend_from_slice(b"*1000\r\n");
    let mut most = 0;
    for _ in 0..1_000 {
        input.extend_from_slice(long.as_bytes());
        let done = decoder.next(&mut input).unwrap();
        assert!(input.is_empty());
        assert!(done.is_some() || !decoder.levels.is_empty());
        most = most.max(decoder.kept);
    }
    assert!(most <= KEPT_OF_ALL + KEPT_OF_ONE + 1_000 * KEPT_OF_EACH, "{most} bytes");
    assert_eq!((decoder.kept, decoder.elements), (0, 0), "each reply has the whole bound");
}

/// A reply costs the same whatever the pieces: no byte of a line is searched twice.
#[test]
fn a_line_is_searched_once() {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    for length in 1..MAX_LINE {
        input.extend_from_slice(b"+");
        assert!(decoder.next(&mut input).unwrap().is_none());
        assert_eq!(decoder.searched, length);
    }
}
