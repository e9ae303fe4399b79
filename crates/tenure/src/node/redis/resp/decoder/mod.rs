//! Reading replies, whatever the pieces they come in.

#[cfg(test)]
mod tests;

use bytes::{Buf as _, BytesMut};
use tenure_core::{LockKey, script::Answer};

use super::{Incoming, NotResp};

/// The reply that is being read.
///
/// Each byte is looked at once, so a reply costs the same in one piece and in thousands. What a
/// reply may be is bounded by what our own requests can be answered with; a string may be as long
/// as a server's longest, but only its beginning is kept. So no server can use up memory.
#[derive(Debug, Default)]
pub(in crate::node::redis) struct Decoder {
    /// The arrays, maps and so on that have begun and not ended, the outermost first.
    levels: Vec<Level>,
    /// The string that has begun and not ended.
    string: Option<Text>,
    /// So many bytes of the input hold no end of a line.
    searched: usize,
    /// Elements that were announced so far.
    elements: usize,
    /// Bytes of strings that were kept so far.
    kept: usize,
}

/// An array, map, set, push or attribute that has begun.
#[derive(Debug)]
struct Level {
    kind: u8,
    /// Elements to come.
    left: usize,
    /// Nobody reads what is inside sets, attributes and inner maps.
    is_kept: bool,
    values: Vec<Answer>,
}

/// A string that has begun.
#[derive(Debug)]
struct Text {
    kind: u8,
    /// Bytes to come, without the end of the line.
    left: usize,
    /// How many of those are kept.
    wanted: usize,
    bytes: Vec<u8>,
}

/// What was read last.
enum Item {
    Value(Answer),
    Error(String),
    /// It describes the value that follows, and nothing here asks for any.
    Attribute,
    Map(Vec<Answer>),
    Push(Vec<Answer>),
}

impl Decoder {
    /// Takes the next complete reply off the front of `input`, if there is one, and everything that
    /// belongs to an incomplete one but for part of a line.
    ///
    /// # Errors
    ///
    /// [`NotResp`] when the bytes are none of RESP3, or more than any request of ours is answered
    /// with. What comes behind them cannot be read.
    pub(in crate::node::redis) fn next(
        &mut self,
        input: &mut BytesMut,
    ) -> Result<Option<Incoming>, NotResp> {
        loop {
            let item = if let Some(mut string) = self.string.take() {
                if !string.take(input)? {
                    self.string = Some(string);
                    return Ok(None);
                }
                Some(self.string_item(string)?)
            } else {
                let Some(end) = self.line_end(input)? else { return Ok(None) };
                let item = self.begin(input.get(..end).unwrap_or_default())?;
                input.advance(end + 2);
                item
            };
            if let Some(incoming) = item.and_then(|item| self.add(item)) {
                (self.elements, self.kept) = (0, 0);
                return Ok(Some(incoming));
            }
        }
    }

    /// Where the first line ends, when all of it is there.
    fn line_end(&mut self, input: &BytesMut) -> Result<Option<usize>, NotResp> {
        let mut end = None;
        while let Some(rest) = input.get(self.searched..)
            && let Some(at) = rest.iter().position(|byte| *byte == b'\n')
        {
            let at = self.searched + at;
            self.searched = at + 1;
            if at > 0 && input.get(at - 1) == Some(&b'\r') {
                end = Some(at - 1);
                break;
            }
        }
        if end.is_none() {
            self.searched = input.len();
        }
        if end.unwrap_or(input.len()) > MAX_LINE {
            return Err(NotResp("a line without an end"));
        }
        if end.is_some() {
            self.searched = 0;
        }
        Ok(end)
    }

    /// Reads a line: a value, or the beginning of one.
    fn begin(&mut self, line: &[u8]) -> Result<Option<Item>, NotResp> {
        let (kind, text) = line.split_first().ok_or(NotResp("an empty line"))?;
        Ok(Some(Item::Value(match (kind, text) {
            (b'+', _) => {
                let (text, _) = text.split_at(text.len().min(self.wanted()));
                self.kept += text.len();
                Answer::Bytes(text.to_vec())
            }
            (b'-', _) => return Ok(Some(Item::Error(lossy(text)))),
            (b':', _) => Answer::Int(integer(text)?),
            (b'$' | b'=' | b'*', b"-1") | (b'_', b"") | (b'#', b"t" | b"f") => Answer::Other,
            (b',' | b'(', [_, ..]) => Answer::Other,
            (b'$' | b'=' | b'!', _) => {
                let left = length(text)?;
                if left > MAX_STRING {
                    return Err(NotResp("a string longer than any server's"));
                }
                let is_kept = self.is_kept();
                let wanted = if is_kept { left.min(self.wanted()) } else { 0 };
                self.kept += wanted;
                self.string = Some(Text { kind: *kind, left, wanted, bytes: Vec::new() });
                return Ok(None);
            }
            (b'*' | b'~' | b'%' | b'|' | b'>', _) => return self.open(*kind, length(text)?),
            _ => return Err(NotResp("a value of no known kind")),
        })))
    }

    /// Begins an array or what is like one.
    fn open(&mut self, kind: u8, length: usize) -> Result<Option<Item>, NotResp> {
        let of_each = if matches!(kind, b'%' | b'|') { 2 } else { 1 };
        let left = length.saturating_mul(of_each);
        // One for itself: there may be any number of empty ones.
        self.elements = self.elements.saturating_add(left).saturating_add(1);
        if self.elements > MAX_ELEMENTS {
            return Err(NotResp("more elements than any request is answered with"));
        }
        let is_outermost = self.levels.is_empty();
        if self.levels.len() >= MAX_DEPTH {
            return Err(NotResp("values nested too deep"));
        }
        if kind == b'>' && !is_outermost {
            return Err(NotResp("a push inside a value"));
        }
        let is_kept =
            self.is_kept() && (is_outermost || kind == b'*') && !matches!(kind, b'~' | b'|');
        let level = Level { kind, left, is_kept, values: Vec::new() };
        if left == 0 {
            return Ok(Some(level.end()));
        }
        self.levels.push(level);
        Ok(None)
    }

    /// Adds what was read to the array that it is in, and ends what ends with it. Returns what is
    /// in none.
    fn add(&mut self, mut item: Item) -> Option<Incoming> {
        loop {
            let Some(level) = self.levels.last_mut() else { return item.incoming() };
            if matches!(item, Item::Attribute) {
                return None;
            }
            level.left -= 1;
            if level.is_kept {
                level.values.push(item.value());
            }
            if level.left > 0 {
                return None;
            }
            item = self.levels.pop()?.end();
        }
    }

    fn string_item(&self, string: Text) -> Result<Item, NotResp> {
        let Text { kind, bytes, .. } = string;
        Ok(match kind {
            b'!' => Item::Error(lossy(&bytes)),
            // A verbatim string begins with three letters of its format and a colon.
            b'=' if self.is_kept() => match bytes.split_at_checked(4) {
                Some(([_, _, _, b':'], text)) => Item::Value(Answer::Bytes(text.to_vec())),
                _ => return Err(NotResp("a verbatim string of no format")),
            },
            _ => Item::Value(Answer::Bytes(bytes)),
        })
    }

    fn is_kept(&self) -> bool {
        self.levels.last().is_none_or(|level| level.is_kept)
    }

    /// How many bytes are kept of the next string.
    fn wanted(&self) -> usize {
        KEPT_OF_ALL.saturating_sub(self.kept).clamp(KEPT_OF_EACH, KEPT_OF_ONE)
    }
}

impl Text {
    /// Takes what there is of it; returns whether that is all.
    fn take(&mut self, input: &mut BytesMut) -> Result<bool, NotResp> {
        let here = self.left.min(input.len());
        let kept = here.min(self.wanted - self.bytes.len());
        self.bytes.extend_from_slice(input.get(..kept).unwrap_or_default());
        input.advance(here);
        self.left -= here;
        if self.left > 0 || input.len() < 2 {
            return Ok(false);
        }
        if !input.starts_with(b"\r\n") {
            return Err(NotResp("a string longer than it said"));
        }
        input.advance(2);
        Ok(true)
    }
}

impl Level {
    fn end(self) -> Item {
        match self.kind {
            b'*' => Item::Value(Answer::Array(self.values)),
            b'%' => Item::Map(self.values),
            b'>' => Item::Push(self.values),
            b'|' => Item::Attribute,
            _ => Item::Value(Answer::Other),
        }
    }
}

impl Item {
    /// As an element of an array.
    fn value(self) -> Answer {
        match self {
            Self::Value(value) => value,
            Self::Error(_) | Self::Attribute | Self::Map(_) | Self::Push(_) => Answer::Other,
        }
    }

    /// As a whole reply.
    fn incoming(self) -> Option<Incoming> {
        Some(match self {
            Self::Value(value) => Incoming::Reply(value),
            Self::Error(words) => Incoming::Error(words),
            Self::Push(fields) => Incoming::Push(fields),
            Self::Map(fields) => Incoming::Map(named(fields)),
            Self::Attribute => return None,
        })
    }
}

/// The pairs whose names are strings.
fn named(fields: Vec<Answer>) -> Vec<(String, Answer)> {
    let mut fields = fields.into_iter();
    let pairs = std::iter::from_fn(|| fields.next().zip(fields.next()));
    let named = pairs.filter_map(|(name, value)| match name {
        Answer::Bytes(name) => Some((String::from_utf8(name).ok()?, value)),
        _ => None,
    });
    named.collect()
}

fn length(digits: &[u8]) -> Result<usize, NotResp> {
    // A sign is none of a length's.
    let digits = if digits.first().is_some_and(u8::is_ascii_digit) { digits } else { b"" };
    let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    length.ok_or(NotResp("a length of other than digits"))
}

fn integer(digits: &[u8]) -> Result<i64, NotResp> {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or(NotResp("a number of other than digits"))
}

/// A server's words, which are read here and shown by the error that they become.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned() // tidy: allow
}

/// Longer than any server's own sentence, even where it repeats a user's name or a long word.
const MAX_LINE: usize = 16 * 1024;

/// A server's longest string is 512 MiB.
const MAX_STRING: usize = 512 * 1024 * 1024;

/// The reply with the most, that to 128 renewals, has 513: an array of arrays of three at most,
/// each counted for itself too. The 100 waiters of an inspection are 210.
const MAX_ELEMENTS: usize = 1_024;

/// Scripts reply with arrays in an array; the reply to HELLO goes a little deeper.
const MAX_DEPTH: usize = 8;

/// Channels are named by keys, and a message has both whole.
const KEPT_OF_ONE: usize = LockKey::MAX_BYTES + 64;

/// When the strings of one reply together have more, only so much is kept of each further one as
/// our own values can be long: a token has 225 bytes at most, a waiter's entry 280.
const KEPT_OF_ALL: usize = 512 * 1024;
const KEPT_OF_EACH: usize = 512;
