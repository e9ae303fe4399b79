//! Faults in how waiters poll.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant("a poll by the holder itself", POLL, "or at.value == token", ""),
    Mutant(
        "a waiter that polls a free lock waits on",
        POLL,
        "if not at.value or at.value == token then",
        "if at.value == token then",
    ),
    Mutant(
        "a waiter in no queue waits on",
        POLL,
        "if not position then return {'go'} end",
        "position = position or 0",
    ),
    Mutant("a poll returns the place from behind", POLL, "'ZRANK'", "'ZREVRANK'"),
    Mutant("a poll returns the ticket", POLL, "redis.call('ZRANK', queue, entry)", SCORE),
    Mutant(
        "a poll returns the remaining TTL in seconds",
        POLL,
        "redis.call('PTTL', lock)\n    redis",
        "redis.call('TTL', lock)\n    redis",
    ),
    Mutant(
        "a poll returns the TTL of the queue",
        POLL,
        "redis.call('PTTL', lock)\n    redis",
        "redis.call('PTTL', queue)\n  redis",
    ),
    Mutant("a poll keeps no queue alive", POLL, KEPT, ""),
    Mutant(
        "a poll gives the queue the TTL of the lock",
        POLL,
        KEPT,
        "redis.call('PEXPIRE', queue, left)",
    ),
    Mutant(
        "a poll keeps a queue at a lock without a TTL too short",
        POLL,
        "math.max(left, 0)",
        "left",
    ),
    Mutant("a poll keeps the lock alive", POLL, KEPT, KEEPS_THE_LOCK),
    Mutant("a poll only raises the TTL of the queue", POLL, KEPT, ONLY_RAISES),
    Mutant("a poll joins the queue", POLL, LET_GO, LETS_IN),
    Mutant("a poll pops the waiter that has to act", POLL, LET_GO, POPS),
    Mutant("a poll takes a free lock", POLL, READ, TAKES),
    Mutant(
        "the result of one lock is returned for the next",
        POLL,
        "if lock ~= at.lock then",
        "if not at.lock then",
    ),
    Mutant("only the first queue's TTL is raised", POLL, READ, FORGETS),
    Mutant("only the first waiter is polled", POLL, "for i = 1, #KEYS / 2 do", "for i = 1, 1 do"),
    Mutant("all are polled by the first token", POLL, "ARGV[2 * i], ", "ARGV[2], "),
    Mutant("all are polled by the first entry", POLL, "ARGV[2 * i + 1])", "ARGV[3])"),
    Mutant(
        "all are polled at the first lock",
        POLL,
        "KEYS[2 * i - 1], KEYS[2 * i],",
        "KEYS[1], KEYS[2 * i],",
    ),
    Mutant(
        "all are polled at the first queue",
        POLL,
        "KEYS[2 * i - 1], KEYS[2 * i],",
        "KEYS[2 * i - 1], KEYS[2],",
    ),
    Mutant(
        "a value that is no queue ends the poll of all",
        POLL,
        "local polled, reply = pcall(poll, ",
        "local polled, reply = true, poll(",
    ),
    Mutant(
        "after one waiter that has to act, all have to",
        POLL,
        "if not polled then reply",
        "if not polled or not kept then reply",
    ),
];

const POLL: &[&str] = &["poll"];
const KEPT: &str = "redis.call('PEXPIRE', queue, math.max(left, 0) + QUEUE_EXTRA_MS)";
const KEEPS_THE_LOCK: &str = "redis.call('PEXPIRE', queue, math.max(left, 0) + QUEUE_EXTRA_MS) \
    if left > 0 then redis.call('PEXPIRE', lock, left + 1000) end";
const ONLY_RAISES: &str = "redis.call('PEXPIRE', queue, \
    math.max(redis.call('PTTL', queue), math.max(left, 0) + QUEUE_EXTRA_MS))";
const FORGETS: &str = "at = {lock = lock, value = read(lock), left = at.left}\n";
const SCORE: &str = "tonumber(redis.call('ZSCORE', queue, entry))";
const LET_GO: &str = "if not position then return {'go'} end";
const LETS_IN: &str = "if not position then redis.call('ZADD', queue, 5, entry) return {'go'} end";
const POPS: &str = "if not position then redis.call('ZPOPMIN', queue) return {'go'} end";
const READ: &str = "at = {lock = lock, value = read(lock)}\n";
const TAKES: &str = "at = {lock = lock, value = read(lock)} if at.value == false then \
    redis.call('SET', lock, token, 'PX', 1000) end\n";
