//! Faults in the check of the server's marker.

use super::Mutant;

const CHECKED: &[&str] = &[
    "checked acquire",
    "checked confirm",
    "checked renew",
    "checked resume",
    "checked steal",
    "checked clock",
];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant(
        "a server under another identity is eligible at once",
        CHECKED,
        "if id and string.find(info, 'master_replid:' .. id .. '\\r', 1, true) and",
        "if id and",
    ),
    Mutant(
        "a server under another identity is known",
        CHECKED,
        "is_sound and db == database and replid == id",
        "is_sound and db == database",
    ),
    Mutant(
        "a marker of another database is known",
        CHECKED,
        "local is_known = is_sound and db == database and",
        "local is_known = is_sound and",
    ),
    Mutant(
        "a marker of another database opens at once",
        CHECKED,
        "whole(db) == database\n",
        "true\n",
    ),
    Mutant(
        "a marker that is open for less opens at once",
        CHECKED,
        "and span <= (whole(open) or -1)",
        "",
    ),
    Mutant(
        "the longest span is forgotten where it is open",
        CHECKED,
        "and span <= (whole(longest) or -1)",
        "",
    ),
    Mutant(
        "2^53 is accepted as a time",
        CHECKED,
        "number < 9007199254740992",
        "number <= 9007199254740992",
    ),
    Mutant("17 digits are accepted as a time", CHECKED, "#digits <= 16", "#digits <= 17"),
    Mutant(
        "what follows a marker is part of it",
        CHECKED,
        "(%x+) (%d+) (%d+)$'",
        "(%x+) (%d+) (%d+)'",
    ),
    Mutant(
        "any word is accepted as a cause",
        CHECKED,
        "local is_sound = (cause == 'new' or cause == 'changed') and",
        "local is_sound =",
    ),
    Mutant("every server is durable", CHECKED, "and is_durable and run ~= own", "and run ~= own"),
    Mutant("no server is durable", CHECKED, "and is_durable and run", "and false and run"),
    Mutant(
        "a durable server opens that was a replica under this run",
        CHECKED,
        "is_durable and run ~= own",
        "is_durable",
    ),
    Mutant(
        "a server without a marker opens at once",
        CHECKED,
        "if not is_kept then",
        "if not text then\n      return 'eligible', ''\n    end\n    if not is_kept then",
    ),
    Mutant(
        "the time that has passed is kept under another identity",
        CHECKED,
        "floor, since, client_since = longest, now, client_ms",
        "floor, since, client_since = longest, since or now, client_since or client_ms",
    ),
    Mutant(
        "the longest span is no floor",
        CHECKED,
        "floor, since, client_since = longest, now",
        "floor, since, client_since = 0, now",
    ),
    Mutant(
        "the longest span is lost under another identity",
        CHECKED,
        "0, is_sound and longest or 0",
        "0, 0",
    ),
    Mutant(
        "the longest span falls",
        CHECKED,
        "longest = math.max(longest, span)",
        "longest = span",
    ),
    Mutant(
        "a changed server is opened by hand",
        CHECKED,
        "and mode == 'open' and cause == 'new'",
        "and mode == 'open'",
    ),
    Mutant(
        "opening by hand does nothing",
        CHECKED,
        "span > open and mode == 'open'",
        "span > open and mode == '?'",
    ),
    Mutant("the floor is forgotten", CHECKED, "math.max(span, floor)", "span"),
    Mutant(
        "a server's clock that was ahead is not followed back",
        CHECKED,
        "math.min(since, now)",
        "since",
    ),
    Mutant(
        "a client's clock that was ahead is not followed back",
        CHECKED,
        "math.min(client_since, client_ms)",
        "client_since",
    ),
    Mutant(
        "the server's clock alone counts",
        CHECKED,
        "math.min(now - since, client_ms - client_since)",
        "now - since",
    ),
    Mutant(
        "the client's clock alone counts",
        CHECKED,
        "math.min(now - since, client_ms - client_since)",
        "client_ms - client_since",
    ),
    Mutant("it opens a millisecond late", CHECKED, "passed >= needed", "passed > needed"),
    Mutant("it opens a millisecond early", CHECKED, "passed >= needed", "passed + 1 >= needed"),
    Mutant(
        "it is open for every lock at once",
        CHECKED,
        "      open = needed\n",
        "      open = 9007199254740991\n",
    ),
    Mutant(
        "the remaining time is returned in seconds",
        CHECKED,
        "'%.0f', needed - passed)",
        "'%.0f', (needed - passed) / 1000)",
    ),
    Mutant("peeking writes", CHECKED, "if mode ~= 'peek' and", "if"),
    Mutant(
        "a value of another type is overwritten",
        CHECKED,
        "if type(text) == 'table' then return 'unusable', '' end",
        "if type(text) == 'table' then text = false end",
    ),
    Mutant("nothing is written", CHECKED, "redis.pcall('SET', MARKER, written)", ""),
    Mutant(
        "a clock is returned without its check",
        &["checked clock"],
        "reply[#reply + 1] = word\n",
        "reply[#reply + 1] = 'eligible'\n",
    ),
];
