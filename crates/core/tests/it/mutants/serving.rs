//! Faults in the library that hands a lock over: whom it skips, serves and notifies.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    // What is an entry.
    Mutant("a grant TTL of 16 digits", HANDING, "#grant_ttl < 16", "#grant_ttl < 17"),
    Mutant("a grant TTL of 15 digits is rejected", HANDING, "#grant_ttl < 16", "#grant_ttl < 15"),
    Mutant("a grant TTL of zero", HANDING, "([1-9]%d*)$'", "(%d+)$'"),
    Mutant("anything after the grant TTL", HANDING, "([1-9]%d*)$'", "([1-9]%d*)'"),
    Mutant("anything before the token", HANDING, "'^([!-~]+) (", "'([!-~]+) ("),
    Mutant("a token of any bytes", HANDING, "'^([!-~]+) (", "'^(%S+) ("),
    Mutant("a token with spaces", HANDING, "'^([!-~]+) (", "'^([ -~]+) ("),
    // Who is there.
    Mutant(
        "a pattern subscriber counts as a waiter",
        HANDING,
        "if listening.err or listening[2] == 0 then return false end",
        "",
    ),
    Mutant(
        "nobody is notified",
        HANDING,
        "redis.pcall('PUBLISH', channel, message)",
        "listening[2]",
    ),
    Mutant(
        "every entry counts as dead",
        HANDING,
        "return type(receivers) == 'number' and",
        "return false and",
    ),
    Mutant("a dead entry is put back", HANDING, DROPPED, PUT_BACK),
    Mutant("a dead entry at the head stops the queue", HANDING, DROPPED, STOPPED),
    Mutant(
        "one dead entry too many is read in a call",
        HANDING,
        "MAX_SERVED = 64",
        "MAX_SERVED = 65",
    ),
    Mutant(
        "one dead entry too few is read in a call",
        HANDING,
        "MAX_SERVED = 64",
        "MAX_SERVED = 63",
    ),
    Mutant("all dead entries are read in one call", HANDING, "MAX_SERVED = 64", "MAX_SERVED = 1e6"),
    Mutant(
        "many dead entries count as all entries",
        HANDING,
        "  return 'more'\nend",
        "  return 'nobody'\nend",
    ),
    Mutant("the last is served first", HANDING, "'ZPOPMIN'", "'ZPOPMAX'"),
    Mutant(
        "a value that is no queue stops a release",
        RELEASING,
        "redis.pcall('ZPOPMIN'",
        "redis.call('ZPOPMIN'",
    ),
    Mutant(
        "the caller is notified of its own turn",
        &["acquire"],
        "if token and token == me then return 'me' end",
        "",
    ),
    Mutant("a suspect is served", &["acquire"], "token and channel ~= suspect then", "token then"),
    Mutant(
        "a hand-over without a number",
        HANDING,
        "if fault then\n          put_back",
        "if fault then number = 1 end\n        if false then\n          put_back",
    ),
    Mutant(
        "a waiter is dropped when there is no number",
        HANDING,
        "if fault then\n          put_back(head)",
        "if fault then",
    ),
    // Tombstones.
    Mutant("a tombstone is an entry", HANDING, "if score >= TOMBSTONES then", "if false then"),
    Mutant(
        "the least tombstone is an entry",
        HANDING,
        "if score >= TOMBSTONES then",
        "if score > TOMBSTONES then",
    ),
    Mutant("tombstones are dropped at once", HANDING, YOUNG, "if false then"),
    Mutant("tombstones stay for ever", HANDING, YOUNG, "if true then"),
    Mutant(
        "tombstones are old a millisecond late",
        HANDING,
        "TOMBSTONE_MS = 60000",
        "TOMBSTONE_MS = 60001",
    ),
    Mutant(
        "tombstones are old a millisecond early",
        HANDING,
        "TOMBSTONE_MS = 60000",
        "TOMBSTONE_MS = 59999",
    ),
    Mutant(
        "tombstones are old by whole seconds",
        HANDING,
        "> wall_ms()",
        "> math.floor(wall_ms() / 1000) * 1000",
    ),
    Mutant(
        "a young tombstone is put back without a TTL",
        HANDING,
        "  redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS)\nend",
        "end",
    ),
    Mutant(
        "a young tombstone is put back as of now",
        HANDING,
        "'ZADD', Q, head[2], head[1]",
        "'ZADD', Q, TOMBSTONES + wall_ms(), head[1]",
    ),
    Mutant(
        "a young tombstone is skipped",
        HANDING,
        "        return 'nobody'\n      end\n    else",
        "        return 'more'\n      end\n    else",
    ),
    Mutant("the queue expires late", HANDING, "QUEUE_EXTRA_MS = 90000", "QUEUE_EXTRA_MS = 90001"),
    // The hand-over.
    Mutant(
        "a hand-over uses the TTL of another",
        HANDING,
        HAND,
        "set(token, 30000, digits(86430000), number)",
    ),
    Mutant(
        "the number of a hand-over expires early",
        HANDING,
        HAND,
        "set(token, grant_ttl, 86400000, number)",
    ),
    Mutant(
        "a hand-over does not write the number",
        HANDING,
        HAND,
        "redis.call('SET', K, token, 'PX', grant_ttl)",
    ),
    Mutant(
        "a hand-over does not write the lock",
        HANDING,
        HAND,
        "redis.call('SET', F, number, 'PX', digits(tonumber(grant_ttl) + 86400000))",
    ),
    Mutant(
        "a hand-over without a grant",
        HANDING,
        "notify(channel, 'g ' .. token)",
        "notify(channel, 'w ' .. token)",
    ),
    Mutant(
        "the grant names another waiter",
        HANDING,
        HAND,
        "set(channel, grant_ttl, digits(tonumber(grant_ttl) + 86400000), number)",
    ),
    // The successor watch.
    Mutant("no successor watch", HANDING, "name_successor_watch(me, channel, grant_ttl)", ""),
    Mutant(
        "the successor watch is of the same connection",
        HANDING,
        "if channel == granted then",
        "if false then",
    ),
    Mutant(
        "a caller without a channel cannot be the successor watch",
        &["acquire"],
        "elseif token and token == me then",
        "elseif false then",
    ),
    Mutant(
        "the caller is not notified that it is the successor watch",
        &["acquire"],
        "elseif token and notify(channel, 'w ' .. token",
        "elseif token and token ~= me and notify(channel, 'w ' .. token",
    ),
    Mutant(
        "the successor watch does not get the suspect",
        HANDING,
        "' ' .. granted)",
        "' ' .. channel)",
    ),
    Mutant(
        "the successor watch does not get the length of the grant",
        HANDING,
        "' ' .. grant_ttl .. ' '",
        "' 1 '",
    ),
    Mutant(
        "a dead successor watch stays",
        HANDING,
        "redis.call('ZREM', Q, entry[1])",
        "index = index + 1",
    ),
    Mutant(
        "a tombstone becomes the successor watch",
        HANDING,
        "#entry == 0 or tonumber(entry[2]) >= TOMBSTONES then",
        "#entry == 0 then",
    ),
    Mutant(
        "there are two successor watches",
        HANDING,
        "grant_ttl .. ' ' .. granted) then\n      return true",
        "grant_ttl .. ' ' .. granted) then\n      index = index + 1",
    ),
    Mutant(
        "a value that is no queue prevents leaving the lock free",
        &["release"],
        "redis.pcall('ZRANGE', Q, index",
        "redis.call('ZRANGE', Q, index",
    ),
    Mutant(
        "one candidate too many is read",
        HANDING,
        "MAX_WATCH_CANDIDATES = 16",
        "MAX_WATCH_CANDIDATES = 17",
    ),
    Mutant(
        "one candidate too few is read",
        HANDING,
        "MAX_WATCH_CANDIDATES = 16",
        "MAX_WATCH_CANDIDATES = 15",
    ),
];

const HANDING: &[&str] = &["acquire", "release", "force_release"];
const RELEASING: &[&str] = &["release", "force_release"];
const HAND: &str = "set(token, grant_ttl, digits(tonumber(grant_ttl) + 86400000), number)";
const YOUNG: &str = "if score - TOMBSTONES + TOMBSTONE_MS > wall_ms() then";
const DROPPED: &str = "          return 'waiter'\n        end\n";
const PUT_BACK: &str = "          return 'waiter'\n        end\n\
    redis.call('ZADD', Q, score + 1000, member) redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS)\n";
const STOPPED: &str =
    "          return 'waiter'\n        end\n        put_back(head) do return 'nobody' end\n";
