//! Fuzz targets: what people write on the command line.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
};

use tenure_testkit::fuzz;

use crate::{
    args::{self, CommandLine},
    duration,
};

#[test]
fn fuzz_options() {
    fuzz("options", |input| {
        let words = input.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned());
        let line = std::iter::once(OsString::from("tenure")).chain(words);
        match args::parse(line) {
            Ok(CommandLine::Run(run)) => format!("run {} {}", run.args.len(), run.verbose),
            Ok(parsed) => format!("{parsed:?}").chars().take(8).collect(),
            Err(failure) => {
                let message = failure.message.unwrap_or_default();
                message.chars().filter(|c| c.is_ascii_alphabetic()).take(12).collect()
            }
        }
    });
}

#[test]
fn fuzz_durations() {
    fuzz("durations", |input| {
        let Ok(text) = std::str::from_utf8(input) else { return 0 };
        let Ok(span) = duration::parse(text) else { return 1 };
        let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
        assert!(number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{text:?}");
        assert!(number.matches('.').count() <= 1 && number != ".", "{text:?}");
        // What is read is what was written, whatever the unit.
        let per_unit = match &text[number.len()..] {
            "" | "s" => 1.0,
            "ms" => 1e-3,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            unit => panic!("no unit: {unit:?}"),
        };
        let written = number.parse::<f64>().expect("a number") * per_unit;
        let read = span.as_secs_f64();
        assert!((read - written).abs() <= written * 1e-9 + 1e-4, "{text:?} is {span:?}");
        2 + text.len().min(20)
    });
}
