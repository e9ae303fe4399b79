//! Making inputs of seeds.

/// Changes seeds at random, and the same way each time.
pub(super) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(super) fn new(seed: u64) -> Self {
        // xorshift stands still at zero.
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// One of the pool, changed in one to eight places.
    pub(super) fn input(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(pool).clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input, pool);
        }
        input.truncate(MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let range = self.range(input.len());
        match self.below(9) {
            0 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte = u8::try_from(self.below(256)).unwrap_or_default();
                }
            }
            2 => drop(input.drain(range)),
            3 => input.truncate(range.start),
            4 => {
                let copy = input.get(range.clone()).unwrap_or_default().to_vec();
                drop(input.splice(range.start..range.start, copy));
            }
            5 => {
                let other = self.one_of(pool).clone();
                let part = self.range(other.len());
                drop(input.splice(range, other.get(part).unwrap_or_default().iter().copied()));
            }
            6 => {
                let number = *self.one_of(&NUMBERS);
                self.replace_number(input, number);
            }
            7 => {
                let word = *self.one_of(&WORDS);
                drop(input.splice(range.start..range.start, word.iter().copied()));
            }
            _ => {
                let word = *self.one_of(&WORDS);
                drop(input.splice(range, word.iter().copied()));
            }
        }
    }

    /// Puts another number in the place of the first one behind some place.
    fn replace_number(&mut self, input: &mut Vec<u8>, number: &str) {
        let from = self.below(input.len() + 1);
        let digits = |range: std::ops::Range<usize>, is: bool| {
            range
                .clone()
                .find(|at| input.get(*at).is_some_and(u8::is_ascii_digit) == is)
                .unwrap_or(range.end)
        };
        let begin = digits(from..input.len(), true);
        let end = digits(begin..input.len(), false);
        drop(input.splice(begin..end, number.bytes()));
    }

    /// A part of so many bytes, most often a short one.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 8 };
        let end = start + self.below(most + 1);
        start..end.min(length)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len());
        all.get(index).expect("it is below the length")
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // The bounds are small, so the bias is, too.
        usize::try_from(self.state >> 33).unwrap_or_default() % bound.max(1)
    }
}

/// Long enough for what is too long; short enough for many a second.
const MAX: usize = 2_048;

/// Where parsers of numbers go wrong.
const NUMBERS: [&str; 16] = [
    "",
    "0",
    "-1",
    "-0",
    "+1",
    "00",
    "1025",
    "65537",
    "2147483648",
    "536870913",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "1.5",
];

/// Where parsers of text go wrong, and what the formats here are made of.
const WORDS: [&[u8]; 40] = [
    b"",
    b"\0",
    b"\r",
    b"\n",
    b"\r\n",
    b"\x1b[2J",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x94\x92",
    b"*1\r\n",
    b"*0\r\n",
    b"%1\r\n",
    b"~1\r\n",
    b"|1\r\n",
    b">1\r\n",
    b"$-1\r\n",
    b"_\r\n",
    b":1\r\n",
    b"+",
    b"-",
    b"$",
    b"=",
    b"!",
    b"granted",
    b"held",
    b"free",
    b" ",
    b"%",
    b"%00",
    b"%25",
    b"@",
    b":",
    b"/",
    b"?",
    b"#",
    b",",
    b"[",
    b"redis://",
    b"--",
];
