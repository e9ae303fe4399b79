//! Faults in how waiters look.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant("a look of the holder itself", LOOK, "or at.value == token", ""),
    Mutant(
        "one who looks at a free lock waits on",
        LOOK,
        "if not at.value or at.value == token then",
        "if at.value == token then",
    ),
    Mutant(
        "one who is in no queue waits on",
        LOOK,
        "if not position then return {'go'} end",
        "position = position or 0",
    ),
    Mutant("a look is told the place from behind", LOOK, "'ZRANK'", "'ZREVRANK'"),
    Mutant("a look is told the ticket", LOOK, "redis.call('ZRANK', queue, entry)", SCORE),
    Mutant(
        "a look is told the time left in seconds",
        LOOK,
        "redis.call('PTTL', lock)\n    redis",
        "redis.call('TTL', lock)\n    redis",
    ),
    Mutant(
        "a look is told the queue's time left",
        LOOK,
        "redis.call('PTTL', lock)\n    redis",
        "redis.call('PTTL', queue)\n  redis",
    ),
    Mutant("a look keeps nothing alive", LOOK, KEPT, ""),
    Mutant(
        "a look gives the queue the end of the lock",
        LOOK,
        KEPT,
        "redis.call('PEXPIRE', queue, left)",
    ),
    Mutant("a look keeps a queue at a lock for ever too short", LOOK, "math.max(left, 0)", "left"),
    Mutant("a look keeps the lock alive", LOOK, KEPT, KEEPS_THE_LOCK),
    Mutant("a look only raises", LOOK, KEPT, ONLY_RAISES),
    Mutant("a look lets in", LOOK, LET_GO, LETS_IN),
    Mutant("a look pops the one that has to go", LOOK, LET_GO, POPS),
    Mutant("a look takes a free lock", LOOK, READ, TAKES),
    Mutant(
        "what was seen at one lock is told of the next",
        LOOK,
        "if lock ~= at.lock then",
        "if not at.lock then",
    ),
    Mutant("a queue's end is moved for the first lock alone", LOOK, READ, FORGETS),
    Mutant(
        "a look is for the first waiter alone",
        LOOK,
        "for i = 1, #KEYS / 2 do",
        "for i = 1, 1 do",
    ),
    Mutant("all look by the first token", LOOK, "ARGV[2 * i], ", "ARGV[2], "),
    Mutant("all look by the first entry", LOOK, "ARGV[2 * i + 1])", "ARGV[3])"),
    Mutant(
        "all look at the first lock",
        LOOK,
        "KEYS[2 * i - 1], KEYS[2 * i],",
        "KEYS[1], KEYS[2 * i],",
    ),
    Mutant(
        "all look at the first queue",
        LOOK,
        "KEYS[2 * i - 1], KEYS[2 * i],",
        "KEYS[2 * i - 1], KEYS[2],",
    ),
    Mutant(
        "what is no queue ends the look of all",
        LOOK,
        "local looked, reply = pcall(look, ",
        "local looked, reply = true, look(",
    ),
    Mutant(
        "after one that goes, none waits",
        LOOK,
        "if not looked then reply",
        "if not looked or not kept then reply",
    ),
];

const LOOK: &[&str] = &["look"];
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
