//! Faults in the library: what is read, which number comes next, and how a lock is granted.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant(
        "a value of another type is read as no value",
        &["inspect", "release", "force_release"],
        "return nil, redis.call('TYPE', key).ok",
        "return false",
    ),
    // The last number.
    Mutant(
        "a value of another type at the fence key is no fault",
        GRANTING,
        "if other then return nil, 'type' end",
        "",
    ),
    Mutant(
        "digits before anything are a number",
        GRANTING,
        "value, '^[1-9]%d*$'",
        "value, '^[1-9]%d*'",
    ),
    Mutant(
        "digits after anything are a number",
        GRANTING,
        "value, '^[1-9]%d*$'",
        "value, '[1-9]%d*$'",
    ),
    Mutant("zero is a number", GRANTING, "value, '^[1-9]%d*$'", "value, '^%d+$'"),
    Mutant("a number may have a sign", GRANTING, "value, '^[1-9]%d*$'", "value, '^-?[1-9]%d*$'"),
    Mutant(
        "everything that Lua can parse is a number",
        GRANTING,
        "string.match(value, '^[1-9]%d*$') and tonumber(value)",
        "tonumber(value)",
    ),
    Mutant("the maximum is no number", GRANTING, "or number > 9007199254740991", LAST_IS_NONE),
    Mutant("2^53 is a number", GRANTING, "or number > 9007199254740991", OVER_IS_ONE),
    Mutant(
        "2^53 is returned as a number",
        &["inspect"],
        "or number > 9007199254740991",
        OVER_IS_ONE,
    ),
    // The next number.
    Mutant("the last number is granted again", GRANTING, "(last or 0) + 1", "(last or 0)"),
    Mutant("numbers start at 0", GRANTING, "if least > number then", "if false then"),
    Mutant("numbers follow the clock back", GRANTING, "if least > number then", "if true then"),
    Mutant("numbers follow whole seconds", GRANTING, " + time[2]", ""),
    Mutant(
        "numbers end before the last",
        GRANTING,
        "if number > 9007199254740991 then",
        "if number >= 9007199254740991 then",
    ),
    Mutant(
        "numbers go on after the last",
        GRANTING,
        "if number > 9007199254740991 then",
        "if number > 9007199254740992 then",
    ),
    Mutant(
        "numbers are formatted by Lua",
        GRANTING,
        "string.format('%.0f', number)",
        "tostring(number)",
    ),
    // The grant.
    Mutant(
        "the lock is written before the fence is read",
        &["steal"],
        "local number, fault = next_number()\nif fault",
        "redis.call('SET', K, token, 'PX', ttl) local number, fault = next_number() if fault",
    ),
    Mutant(
        "the queue is joined before the fence is read",
        &["acquire"],
        "  if fault then return answer({request, 'fault', fault}) end\nend\n--",
        "  if fault then if entry then join() end \
         return answer({request, 'fault', fault}) end\nend\n--",
    ),
    Mutant("a lock without an end", GRANTING, "K, token, 'PX', ttl)", "K, token)"),
    Mutant("a fence without an end", GRANTING, "F, number, 'PX', fence_ttl)", "F, number)"),
    Mutant(
        "a fence that ends with the lease",
        GRANTING,
        "number, 'PX', fence_ttl",
        "number, 'PX', ttl",
    ),
    Mutant("a fence that keeps its end", GRANTING, "number, 'PX', fence_ttl", "number, 'KEEPTTL'"),
    Mutant(
        "a fence that is written once",
        GRANTING,
        "'SET', F, number,",
        "'SET', F, number, 'NX',",
    ),
    Mutant(
        "a fence that is not written",
        GRANTING,
        "redis.call('SET', F, number, 'PX', fence_ttl)",
        "",
    ),
    Mutant("a lock that is not written", GRANTING, "redis.call('SET', K, token, 'PX', ttl)", ""),
    Mutant(
        "a grant only where the key is missing",
        GRANTING,
        "K, token, 'PX'",
        "K, token, 'NX', 'PX'",
    ),
    // Coming back.
    Mutant("a repeated acquire is a new grant", KEEPING, "if number then", "if false then"),
    Mutant(
        "a repeated acquire returns no number",
        KEEPING,
        "fault} end\n  set(token, ttl, fence_ttl, number)\n  if left",
        "fault} end\n  number = '0' set(token, ttl, fence_ttl, number)\n  if left",
    ),
    Mutant("a repeated acquire raises no TTL", KEEPING, RAISES, ""),
    Mutant(
        "a repeated acquire lowers the TTL",
        KEEPING,
        RAISES,
        "redis.call('PEXPIRE', lock, ttl)",
    ),
    Mutant(
        "a repeated acquire sets no TTL on a key that has none",
        KEEPING,
        RAISES,
        RAISES_ENDS_ONLY,
    ),
    Mutant(
        "TTLs are compared as texts",
        KEEPING,
        RAISES,
        "if tostring(has) < ttl then redis.call('PEXPIRE', lock, ttl) end",
    ),
    Mutant(
        "a repeated acquire lets the fence expire",
        KEEPING,
        "2 * left < tonumber(fence_ttl)",
        "false",
    ),
    Mutant(
        "a repeated acquire without a number lowers the TTL",
        KEEPING,
        "if left > tonumber(ttl) then",
        "if false then",
    ),
];

const GRANTING: &[&str] = &["acquire", "resume", "steal"];
pub(super) const RAISES: &str = "redis.call('PEXPIRE', lock, math.max(has, tonumber(ttl)))";
pub(super) const RAISES_ENDS_ONLY: &str =
    "if has >= 0 then redis.call('PEXPIRE', lock, math.max(has, tonumber(ttl))) end";
const KEEPING: &[&str] = &["acquire", "resume"];
const LAST_IS_NONE: &str = "or number >= 9007199254740991";
const OVER_IS_ONE: &str = "or number > 9007199254740992";
