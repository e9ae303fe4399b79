//! Addresses, good and bad, and what of them is shown.

use std::fs;

use proptest::prelude::*;
use tenure_testkit::TempDir;

use super::*;

fn shown(text: &str) -> String {
    let address: Address = text.parse().unwrap();
    let Address::Server(server) = &address else { return address.to_string() };
    let password = server.password.as_ref().map(Secret::expose);
    format!("{address} {:?} {password:?}", server.user)
}

#[test]
fn addresses_are_read() {
    for (text, means) in [
        ("redis://h", "h:6379 None None"),
        ("valkey://127.0.0.1:7000/2", "127.0.0.1:7000/2 None None"),
        ("redis://[::1]:7000", "[::1]:7000 None None"),
        ("redis://[fe80::1%25eth0]", "[fe80::1%eth0]:6379 None None"),
        ("redis://u:p%40ss@h/0", "h:6379 Some(\"u\") Some(\"p@ss\")"),
        ("redis://:p@ss@h", "h:6379 None Some(\"p@ss\")"),
        ("redis://:p#/s@h", "h:6379 None Some(\"p#/s\")"),
        ("redis://h?db=3", "h:6379/3 None None"),
        ("redis+unix:///run/r.sock?db=1", "/run/r.sock/1 None None"),
        ("valkey+unix://u:p@/run/r.sock", "/run/r.sock Some(\"u\") Some(\"p\")"),
        ("memory://", "memory"),
        ("memory://shop", "memory shop"),
    ] {
        assert_eq!(shown(text), means, "{text}");
    }
}

#[test]
fn lists_are_split_where_a_scheme_follows() {
    for (text, means) in [
        ("redis://a", "a:6379"),
        (" redis://a , redis://b\n", "a:6379|b:6379"),
        ("redis://a,,valkey://b redis://c:1/2", "a:6379|b:6379|c:1/2"),
        ("redis://:p,w@a,memory://x", "a:6379|memory x"),
        ("redis+unix:///run/a b,c.sock redis://b", "/run/a b,c.sock|b:6379"),
        ("memory://,memory://", "memory|memory"),
    ] {
        let names: Vec<_> = list(text).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names.join("|"), means, "{text}");
    }
    for (text, words) in [
        ("redis://u:hunter2@a,valkey://a:6379", "a:6379 is named twice"),
        ("redis://a,http://u:hunter2@b", "in number 2 of 2: unknown scheme `http`"),
        ("", "no `scheme://`"),
    ] {
        let error = list(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn bad_addresses_name_the_part_that_is_wrong_and_what_to_try() {
    for (text, words) in [
        ("127.0.0.1:6379", "no `scheme://`"),
        ("http://u:hunter2@h", "unknown scheme `http`"),
        ("hunter2://h", "unknown scheme;"),
        ("redis://u:hunter2@h:0", "the port, after the host's colon"),
        ("redis://u:hunter2@h:99999", "from 1 to 65535"),
        ("redis://u:hunter2", "a login needs `@host` behind it"),
        ("redis://u:hunt?er2@h", "an `@` after the `?`"),
        ("redis://u:p@h/hunter2", "the database is no number"),
        ("redis://u:hunter2@h/4294967296", "the database is no number"),
        ("redis://u:hunter2@", "no host"),
        ("redis://:hunter2", "no host"),
        ("redis://hunter2#x", "a character that no host name has"),
        ("redis://[::1]hunter2", "after the `]`"),
        ("redis://u@h", "a user without a password"),
        ("redis://u:hunter2@h?hunter2=1", "an unknown setting after the `?`"),
        ("redis://u:hunter2@h?durable=hunter2", "`durable` must be"),
        ("redis+unix://u:hunter2@run/x", "absolute path"),
        ("redis+unix://u:hunter2", "percent-encode ? # / @ : %"),
        ("redis://h?password_file=/nonexistent/file", "\"/nonexistent/file\" cannot be read"),
        ("memory://u:hunter2@h", "has no login"),
        ("", "no `scheme://`"),
        ("redis://u:hunter2@a,redis://b", "more than one `://`"),
    ] {
        let error = text.parse::<Address>().unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn a_password_is_never_shown() {
    let address: Address = "redis://admin:hunter2@h".parse().unwrap();
    assert_eq!(format!("{address:?} {address}"), "Address(h:6379) h:6379");
    let Address::Server(server) = address else { panic!("a server") };
    assert_eq!(format!("{server:?}"), "ServerAddress(h:6379)");
    assert_eq!(server.blot_out("args: 'hunter2'"), "args: '***'");
}

/// The password, and the warning, of an address that names this file.
fn of_file(path: &std::path::Path) -> Result<(String, Option<String>), String> {
    let text = format!("redis://h?password_file={}", path.display());
    let address = text.parse::<Address>().map_err(|error| error.to_string())?;
    let warning = address.warning().map(ToOwned::to_owned);
    let Address::Server(server) = address else { panic!("a server") };
    Ok((server.password.as_ref().unwrap().expose().to_owned(), warning))
}

#[test]
fn a_password_file_must_be_short_and_regular_and_a_readable_one_warns() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = TempDir::new();
    let file = dir.path().join("password");
    fs::write(&file, "hunter2\nnot this\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(of_file(&file), Ok(("hunter2".into(), None)));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (password, warning) = of_file(&file).unwrap();
    assert_eq!(password, "hunter2");
    assert!(warning.unwrap().contains("every user of this host can read"), "{file:?}");

    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let long = dir.path().join("long");
    fs::write(&long, "x".repeat(70_000)).unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "\nhunter2\n").unwrap();
    for (path, words) in [
        (pipe.as_path(), "no regular file"),
        (dir.path(), "no regular file"),
        (std::path::Path::new("/dev/zero"), "no regular file"),
        (&long, "longer than 64 KiB"),
        (&empty, "is empty"),
    ] {
        let error = of_file(path).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

/// Marks what may be user information: upper case, so that no word of an error is like it.
const MARK: &str = "S3CRET";

proptest! {
    /// Wherever a login is cut, and whatever is in the password, no part of it is repeated, but
    /// where what is left of it is a sound name of a host.
    #[test]
    fn no_error_repeats_any_part_of_a_login(
        scheme in "(redis|valkey|redis\\+unix|valkey\\+unix|memory|http|file|rediss)://|",
        before in "[?#/@:%&=,. a-z0-9\\[\\]\u{202e}]{0,3}",
        after in "[?#/@:%&=,. a-z0-9\\[\\]\n\u{1b}]{0,4}",
        behind in "(@host|@host:1/2|@/run/x\\.sock|@|)(\\?db=1|)",
        other in "|redis://b,|redis://c redis://d,",
        cut in 0_usize..60,
    ) {
        let whole = format!("{scheme}u{MARK}:{before}{MARK}{after}{behind}");
        let end = (0..=cut.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
        for address in [&whole[..], &whole[..end], &whole[end..]] {
            match list(&format!("{other}{address}")) {
                Ok(addresses) => {
                    // Of what was read as an address, the host is shown, or the path.
                    let places = addresses.iter().map(|address| match address {
                        Address::Server(server) => match &server.place {
                            Endpoint::Tcp { host, .. } => host.clone(),
                            Endpoint::Unix(path) => path.display().to_string(),
                        },
                        address @ Address::Memory(_) => address.to_string(),
                        #[cfg(feature = "sqlite")]
                        address @ Address::File(_) => address.to_string(),
                    });
                    if !places.collect::<String>().contains(MARK) {
                        let shown = format!("{addresses:?}");
                        prop_assert!(!shown.contains(MARK), "{address:?}: {shown}");
                        prop_assert!(shown.chars().all(Shown::is_plain), "{shown:?}");
                    }
                }
                Err(error) => {
                    let shown = format!("{error} {error:?}");
                    prop_assert!(!shown.contains(MARK), "{address:?}: {shown}");
                    prop_assert!(error.to_string().chars().all(Shown::is_plain), "{shown:?}");
                }
            }
        }
    }

    #[test]
    fn a_password_in_a_server_message_is_removed(
        password in "[!-~]{4,12}",
        before in "(?s).{0,20}",
        after in "(?s).{0,20}",
    ) {
        let encoded: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let address: Address = format!("redis://u:{encoded}@h").parse().unwrap();
        let Address::Server(server) = address else { panic!("a server") };
        let echo = server.blot_out(&format!("ERR {before}{password}{after}"));
        prop_assert!(!echo.contains(&password), "{echo:?}");
    }
}

/// The word stands for a password, wherever in an address it ends up.
#[test]
fn fuzz_addresses() {
    tenure_testkit::fuzz("addresses", |input| {
        let text = String::from_utf8_lossy(input);
        match list(&text) {
            Ok(addresses) => addresses.len().to_string(),
            Err(error) => {
                let said = format!("{error} {error:?}");
                // The path of a password file is no secret, and the user needs it.
                let names_a_file = said.contains("the password file");
                assert!(names_a_file || !said.contains("S3cretWord"), "{said}");
                said.chars().filter(char::is_ascii_alphabetic).take(60).collect()
            }
        }
    });
}
