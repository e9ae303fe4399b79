//! Faults in how several nodes come to agree on a number.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    // A proposal.
    Mutant("proposals are ignored", ACQUIRE, PROPOSED, "if false then"),
    Mutant("proposals have no bound", ACQUIRE, "wall_us(3600, time)", "2^53 - 1"),
    Mutant(
        "proposals may be a little over an hour ahead",
        ACQUIRE,
        "wall_us(3600, time)",
        "wall_us(3600, time) + 1",
    ),
    Mutant(
        "proposals may be a little less than an hour ahead",
        ACQUIRE,
        "wall_us(3600, time)",
        "wall_us(3600, time) - 1",
    ),
    Mutant("proposals may be as far behind as they like", ACQUIRE, "wall_us(-3600, time)", "0"),
    Mutant(
        "proposals may be a little over an hour behind",
        ACQUIRE,
        "wall_us(-3600, time)",
        "wall_us(-3600, time) - 1",
    ),
    Mutant(
        "proposals may be a little less than an hour behind",
        ACQUIRE,
        "wall_us(-3600, time)",
        "wall_us(-3600, time) + 1",
    ),
    Mutant("proposals are at least the clock", ACQUIRE, "wall_us(-3600, time)", "wall_us(0, time)"),
    Mutant(
        "a proposal replaces the number of a repeated acquire",
        ACQUIRE,
        "    raise(K, F, ttl, fence_ttl)\n",
        "    if proposal and proposal ~= '' then number = math.max(number, tonumber(proposal)) \
         end raise(K, F, ttl, fence_ttl)\n",
    ),
    Mutant(
        "a repeated acquire without a number ignores its proposal",
        ACQUIRE,
        "keep(request, token, ttl, fence_ttl, proposal))",
        "keep(request, token, ttl, fence_ttl))",
    ),
    Mutant(
        "an acquire of a free lock without a queue ignores its proposal",
        ACQUIRE,
        "local number, fault = next_number(proposal)\n  if fault then return answer",
        "local number, fault = next_number()\n  if fault then return answer",
    ),
    Mutant(
        "an acquire of a free lock with a queue ignores its proposal",
        ACQUIRE,
        "  number, fault = next_number(proposal)\n  if fault then return answer",
        "  number, fault = next_number()\n  if fault then return answer",
    ),
    Mutant(
        "the last number is returned as it was before",
        ACQUIRE,
        "number or last and digits(last) or ''",
        "number or last and digits(last - 1) or ''",
    ),
    Mutant(
        "the number of this grant is returned as it was before",
        ACQUIRE,
        "number or last and digits(last) or ''",
        "number and digits(number - 1) or last and digits(last) or ''",
    ),
    Mutant(
        "the clock is returned in milliseconds",
        ACQUIRE,
        "reply[#reply + 1] = clock_digits()",
        "reply[#reply + 1] = digits(wall_us() / 1000)",
    ),
    Mutant(
        "a waiter that another's attempt serves ignores the proposal",
        ACQUIRE,
        "if not number then number, fault = next_number(proposal)",
        "if not number then number, fault = next_number()",
    ),
    // A confirmation.
    Mutant("confirm raises under another's lock", CONFIRM, "value ~= token", "not value"),
    Mutant(
        "confirm raises without a lock",
        CONFIRM,
        "if value ~= token then",
        "if value and value ~= token then",
    ),
    Mutant(
        "confirm raises before it reads the lock",
        CONFIRM,
        "local value, other = read(K)",
        RAISED_FIRST,
    ),
    Mutant("confirm lowers", CONFIRM, "last > tonumber(number)", "false"),
    Mutant("confirm returns the requested number", CONFIRM, "'ours', number}", "'ours', ARGV[3]}"),
    Mutant("confirm raises nothing", CONFIRM, CONFIRMS, ""),
    Mutant("confirm lowers the TTL of the number", CONFIRM, LIFE, "fence_ttl)"),
    Mutant(
        "confirm does not raise the TTL of the number",
        CONFIRM,
        LIFE,
        "math.max(redis.call('PTTL', F), 1))",
    ),
    Mutant(
        "confirm raises the TTL of the lock",
        CONFIRM,
        "return {request, clock, 'ours'",
        "redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), 60000)) \
         return {request, clock, 'ours'",
    ),
    Mutant(
        "confirm overwrites a value that is no number",
        CONFIRM,
        "if fault then return not_primary(Q) or {request, clock, 'fault', fault} end",
        "",
    ),
    // A release.
    Mutant("release raises no number", RELEASE, "elseif number ~= '' then", "elseif false then"),
    Mutant("release lowers the number", RELEASE, "last < tonumber(number)", "true"),
    Mutant(
        "release stores its number only over another",
        RELEASE,
        "not fault and (not last or",
        "not fault and (last and",
    ),
    Mutant("release overwrites a value that is no number", RELEASE, "not fault and", ""),
    Mutant(
        "release lowers the TTL of the number",
        RELEASE,
        "'PX', math.max(left, 86400000)",
        "'PX', 86400000",
    ),
    Mutant(
        "release lets the number expire early",
        RELEASE,
        "math.max(left, 86400000)",
        "math.max(left, 1)",
    ),
    Mutant(
        "release takes the number for an entry",
        RELEASE,
        "for i = 6, #ARGV",
        "for i = 7, #ARGV",
    ),
    // The notification.
    Mutant("release notifies no waiter", RELEASE, NOTIFIES_ALL, "end"),
    Mutant("an undone attempt notifies all", RELEASE, NOTIFIES_ALL, "notify_all() end"),
    Mutant(
        "a handed-over lock is announced as free",
        RELEASE,
        "if value and next ~= 'waiter' then\n",
        "if value and next == 'waiter' and number ~= '' then notify_all() end\n\
         if value and next ~= 'waiter' then\n",
    ),
    Mutant(
        "a non-holder announces the lock as free",
        RELEASE,
        "local next\n",
        "if not value and number ~= '' then notify_all() end local next\n",
    ),
    Mutant(
        "a lock of another is announced as free",
        RELEASE,
        "  if value then return {request, 'held', value} end",
        "  if value then notify_all() return {request, 'held', value} end",
    ),
    Mutant("force_release notifies no waiter", FORCED, "  notify_all()\n", ""),
    Mutant(
        "force_release announces a handed-over lock as free",
        FORCED,
        "if next ~= 'waiter' then\n",
        "if next == 'waiter' then notify_all() else\n",
    ),
    Mutant("all locks have one channel", TELLING, "'tenure:free:' .. K", "'tenure:free:foo'"),
    Mutant(
        "the notification is on another channel",
        TELLING,
        "'tenure:free:' .. K",
        "'tenure:' .. K",
    ),
    Mutant("the notification has another text", TELLING, ".. K, 'f')", ".. K, 'g')"),
    // The clock.
    Mutant(
        "the clock stands still",
        &["clock"],
        "{ARGV[1], clock_digits()}",
        "{ARGV[1], '1760000000123456'}",
    ),
];

const ACQUIRE: &[&str] = &["acquire"];
const CONFIRM: &[&str] = &["confirm"];
const RELEASE: &[&str] = &["release"];
const FORCED: &[&str] = &["force_release"];
const TELLING: &[&str] = &["release", "force_release"];
const NOTIFIES_ALL: &str = "if number ~= '' then notify_all() end\nend";
const PROPOSED: &str = "if proposal and proposal ~= '' then";
const CONFIRMS: &str = "redis.call('SET', F, number, 'PX', \
     math.max(redis.call('PTTL', F), tonumber(fence_ttl)))";
const LIFE: &str = "math.max(redis.call('PTTL', F), tonumber(fence_ttl)))";
const RAISED_FIRST: &str = "local l = last_number() if l and l < tonumber(ARGV[3]) then \
     redis.call('SET', F, ARGV[3], 'KEEPTTL') end local value, other = read(K)";
