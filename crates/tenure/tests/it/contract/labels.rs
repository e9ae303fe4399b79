//! What others see of a holder.

use super::place::Place;

pub(super) fn the_label_is_host_and_process_unless_set(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    let holder = at.inspect().held.unwrap().holder.to_string();
    let (host, process) = holder.split_once('/').expect("host/process");
    assert!(!host.is_empty(), "{holder}");
    assert_eq!(process, std::process::id().to_string());
    guard.release().unwrap();
}

pub(super) fn labels_of_all_kinds_are_shown_as_written(at: &Place) {
    let client = at.client();
    for (label, seen) in [
        ("", "(no label)"),
        ("host/1", "host/1"),
        ("\u{8ba2}\u{5355}\u{670d}\u{52a1}", "\u{8ba2}\u{5355}\u{670d}\u{52a1}"),
        (" two  words ", " two  words "),
        ("a@b", "a@b"),
        ("100%", "100%"),
        ("%41", "%41"),
        // What would break a log's lines is escaped.
        ("a\r\nb", "a\\r\\nb"),
    ] {
        let guard = client.lock(&at.key).label(label).acquire().unwrap();
        assert_eq!(at.inspect().held.unwrap().holder.to_string(), seen, "{label:?}");
        assert!(guard.token().as_str().bytes().all(|b| b.is_ascii_graphic()), "{label:?}");
        guard.release().unwrap();
    }
}
