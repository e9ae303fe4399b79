//! Faults in how a waiter joins the queue, keeps its place, and leaves.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    // Whether to join.
    Mutant(
        "a token that was cancelled is served",
        ACQUIRE,
        "if late then return answer(late) end",
        "",
    ),
    Mutant(
        "a token that was cancelled is served where the lock is free",
        ACQUIRE,
        "(free or keys == 2) and given_up",
        "not free and given_up",
    ),
    Mutant(
        "a token that was cancelled waits",
        ACQUIRE,
        "(free or keys == 2) and given_up",
        "free and given_up",
    ),
    Mutant(
        "a waiter joins only what is held",
        ACQUIRE,
        "entry and join()",
        "entry and not free and join()",
    ),
    Mutant(
        "a waiter joins at a value of another type",
        ACQUIRE,
        "if other then return answer",
        "if other and entry then join() end if other then return answer",
    ),
    Mutant(
        "a try overtakes the waiters",
        ACQUIRE,
        "serve(token, suspect, proposal)\nif",
        "entry and serve(token, suspect, proposal) or 'nobody'\nif",
    ),
    Mutant(
        "a new waiter overtakes the others",
        ACQUIRE,
        "serve(token, suspect, proposal)\nif",
        "not entry and serve(token, suspect, proposal) or 'nobody'\nif",
    ),
    Mutant(
        "a waiter gives up after many dead entries",
        ACQUIRE,
        "if next == 'nobody' or next == 'me' then",
        "if next ~= 'waiter' then",
    ),
    Mutant(
        "the caller does not recognise its own entry",
        ACQUIRE,
        "if next == 'nobody' or next == 'me' then",
        "if next == 'me' then",
    ),
    // Places.
    Mutant("a ticket is ignored", ACQUIRE, "tonumber(ticket) or none", "none"),
    Mutant(
        "a ticket raises the place",
        ACQUIRE,
        BEST,
        "tonumber(ticket) or math.min(old or none, moved or none)",
    ),
    Mutant(
        "a ticket does not lower the place",
        ACQUIRE,
        BEST,
        "old or moved or tonumber(ticket) or none",
    ),
    Mutant(
        "an earlier entry raises the place",
        ACQUIRE,
        "math.min(old or none, moved or none,",
        "math.min(moved or old or none,",
    ),
    Mutant(
        "an earlier entry does not lower the place",
        ACQUIRE,
        "math.min(old or none, moved or none,",
        "math.min(old or moved or none,",
    ),
    Mutant(
        "an earlier entry is not searched for",
        ACQUIRE,
        "if previous ~= '' and previous ~= entry then",
        "if false then",
    ),
    Mutant(
        "an earlier entry is removed even when it is this one",
        ACQUIRE,
        "if previous ~= '' and previous ~= entry then",
        "if previous ~= '' then",
    ),
    Mutant(
        "an earlier entry stays",
        ACQUIRE,
        "if moved then redis.call('ZREM', Q, previous) end",
        "",
    ),
    Mutant(
        "only an earlier entry is searched for",
        ACQUIRE,
        "tonumber(redis.call('ZSCORE', Q, entry)), nil",
        "nil, nil",
    ),
    Mutant(
        "tickets follow the clock back",
        ACQUIRE,
        "if top[2] and tonumber(top[2]) >= place then",
        "if false then",
    ),
    Mutant(
        "two in a microsecond have one ticket",
        ACQUIRE,
        "place = tonumber(top[2]) + 1 end",
        "place = tonumber(top[2]) end",
    ),
    Mutant(
        "tickets follow tombstones",
        ACQUIRE,
        "redis.call('ZREVRANGEBYSCORE', Q, below,",
        "redis.call('ZREVRANGEBYSCORE', Q, '+inf',",
    ),
    Mutant(
        "a ticket that a waiter brings is not stored",
        ACQUIRE,
        "if place ~= old then",
        "if false then",
    ),
    Mutant("a queued waiter joins again", ACQUIRE, "'ZADD', Q, 'NX', place", "'ZADD', Q, place"),
    Mutant(
        "a new place among the tombstones",
        ACQUIRE,
        "return math.min(place, TOMBSTONES - 1)",
        "return place",
    ),
    Mutant(
        "an entry among the tombstones",
        ACQUIRE,
        "math.max(0, math.min(place, TOMBSTONES - 1))",
        "place",
    ),
    Mutant("nobody joins", ACQUIRE, "entry and join()", "entry and '1'"),
    Mutant("places are counted from behind", ACQUIRE, "'ZRANK'", "'ZREVRANK'"),
    Mutant("a queue expires with the lock", ACQUIRE, KEPT, "redis.call('PEXPIRE', Q, left)"),
    Mutant("a queue has no TTL", ACQUIRE, KEPT, ""),
    Mutant(
        "a queue at a lock without a TTL expires early",
        ACQUIRE,
        KEPT,
        "redis.call('PEXPIRE', Q, left + QUEUE_EXTRA_MS)",
    ),
    Mutant(
        "after many dead entries a queue gets no new TTL",
        ACQUIRE,
        "if place then redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS) end",
        "",
    ),
    // Leaving.
    Mutant("a waiter that leaves stays in the queue", RELEASE, LEAVES, ""),
    Mutant(
        "leaving removes one entry only",
        RELEASE,
        "unpack(ARGV, i, math.min(i + 999, #ARGV))",
        "ARGV[i]",
    ),
    Mutant(
        "a waiter that leaves a free lock stays",
        RELEASE,
        LEAVES,
        "if value then redis.pcall('ZREM', Q, unpack(ARGV, 6)) end",
    ),
    Mutant(
        "a value that is no queue cannot be left",
        RELEASE,
        "redis.pcall('ZREM'",
        "redis.call('ZREM'",
    ),
    Mutant(
        "no tombstone is left",
        RELEASE,
        "redis.pcall('ZADD', Q, unpack(members, 1, value == token and 4 or 2))",
        "0",
    ),
    Mutant("a tombstone is left each time", RELEASE, "if ARGV[3] == '1' then", "if true then"),
    Mutant(
        "a tombstone is placed among the entries",
        RELEASE,
        "local score = digits(TOMBSTONES + now)",
        "local score = digits(now)",
    ),
    Mutant(
        "old tombstones stay",
        RELEASE,
        "redis.pcall('ZREMRANGEBYSCORE', Q, digits(TOMBSTONES), old)",
        "",
    ),
    Mutant(
        "entries are removed with the old tombstones",
        RELEASE,
        "redis.pcall('ZREMRANGEBYSCORE', Q, digits(TOMBSTONES), old)",
        "redis.pcall('ZREMRANGEBYSCORE', Q, '-inf', old)",
    ),
    Mutant("a tombstone has no TTL", RELEASE, "if type(marked) == 'number' and", "if false and"),
    Mutant(
        "a tombstone shortens the queue",
        RELEASE,
        " and redis.call('PTTL', Q) < QUEUE_EXTRA_MS then",
        " then",
    ),
    Mutant(
        "a tombstone sets a TTL on a value that is no queue",
        RELEASE,
        "if type(marked) == 'number' and redis",
        "if redis",
    ),
    // An earlier release.
    Mutant("no release is remembered", RELEASE, "value == token and 4 or 2", "2"),
    Mutant(
        "a release of a lock that was not held is remembered",
        RELEASE,
        "value == token and 4 or 2",
        "4",
    ),
    Mutant(
        "a release of any token counts for every token",
        RELEASE,
        "'!' .. token .. ' released'",
        "'! released'",
    ),
    Mutant("no earlier release is seen", RELEASE, "type(already) == 'string'", "false"),
    Mutant("an earlier release is seen each time", RELEASE, "type(already) == 'string'", "true"),
    Mutant("looking for an earlier release records one", RELEASE, "'XX', 'INCR', 0", "'INCR', 0"),
    Mutant("looking for an earlier release makes it younger", RELEASE, "'INCR', 0", "'INCR', 1"),
    Mutant(
        "the current holder hides an earlier release",
        RELEASE,
        "if is_already and (other or value)",
        "if false",
    ),
    Mutant(
        "a value of another type hides an earlier release",
        RELEASE,
        "(other or value)",
        "value",
    ),
    Mutant(
        "an earlier release is not reported where the lock is free",
        RELEASE,
        "is_already and 'already' or 'free'",
        "'free'",
    ),
];

const ACQUIRE: &[&str] = &["acquire"];
const RELEASE: &[&str] = &["release"];
const LEAVES: &str = "for i = 6, #ARGV, 1000 do \
    redis.pcall('ZREM', Q, unpack(ARGV, i, math.min(i + 999, #ARGV))) end";
const BEST: &str = "math.min(old or none, moved or none, tonumber(ticket) or none)";
const KEPT: &str = "redis.call('PEXPIRE', Q, math.max(left, 0) + QUEUE_EXTRA_MS)";
