//! Passwords, which are never shown, and the files that hold them.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
};

use rustix::fs::OFlags;
use tenure_core::Shown;

/// A password: never shown.
pub(crate) struct Secret(String);

impl Secret {
    pub(super) fn new(password: String) -> Self {
        Self(password)
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the password, in either case and as servers and programs quote it.
    pub(super) fn blot_out(&self, text: &str) -> String {
        let forms = [
            self.0.clone(),
            self.0.replace(['\r', '\n'], " "),
            self.0.escape_default().to_string(), // tidy: allow
            self.0.escape_debug().to_string(),   // tidy: allow
        ];
        forms.iter().fold(text.to_owned(), |text, form| without(&text, form))
    }
}

/// Replaces what is the same as `secret` but for the case of ASCII letters.
fn without(text: &str, secret: &str) -> String {
    if secret.is_empty() {
        return text.to_owned();
    }
    // Of the same length, so places found in one are places in the other.
    let (lower, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let mut kept = String::new();
    let mut from = 0;
    for (at, found) in lower.match_indices(&secret) {
        kept.push_str(text.get(from..at).unwrap_or_default());
        kept.push_str("***");
        from = at + found.len();
    }
    kept + text.get(from..).unwrap_or_default()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The first line of a file (the newline that an editor leaves is not part of a password), and a
/// warning when every user of the host can read it.
///
/// Only a regular file will do: another may keep the reader waiting, or never end.
pub(super) fn of_file(path: &str) -> Result<(Secret, Option<String>), String> {
    let shown = Shown::quoted(path);
    let unread = |error: io::Error| format!("the password file {shown} cannot be read: {error}");
    let (text, mode) = read(path).map_err(unread)?;
    let warning = (mode & OTHERS_READ != 0).then(|| {
        format!("every user of this host can read the password file {shown}: chmod o-r would do")
    });
    let Some(password) = text.lines().next().filter(|line| !line.is_empty()) else {
        return Err(format!("the first line of the password file {shown} is empty"));
    };
    Ok((Secret(password.to_owned()), warning))
}

fn read(path: &str) -> io::Result<(String, u32)> {
    let unfit = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    // Without a writer a pipe would keep the opening waiting.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(unfit("it is no regular file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(unfit("it is longer than 64 KiB, so it is no password's"));
    }
    Ok((text, metadata.mode()))
}

/// More than any password: servers take a command's argument of that length before a login is over.
const MAX_BYTES: u64 = 64 * 1024;

/// The permission of all other users to read a file.
const OTHERS_READ: u32 = 0o004;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_removed_in_every_encoding() {
        let secret = Secret::new("S3cr\"et\n\u{e9}".into());
        for repeated in
            ["S3cr\"et\n\u{e9}", "s3CR\"ET\n\u{e9}", "S3cr\"et \u{e9}", "S3cr\\\"et\\n\\u{e9}"]
        {
            let text = secret.blot_out(&format!("ERR <{repeated}> and '{repeated}'"));
            assert_eq!(text, "ERR <***> and '***'", "{repeated}");
        }
        assert_eq!(Secret::new(String::new()).blot_out("as it is"), "as it is");
    }
}
