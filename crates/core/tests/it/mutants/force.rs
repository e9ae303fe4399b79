//! Faults in forced commands, and in how a value is read.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    // What a lock library may have written.
    Mutant("an empty value is a lock", FORCE, "#value > 0 and", ""),
    Mutant("a long value is a lock", FORCE, "#value < 256 and", ""),
    Mutant("256 bytes are a lock", FORCE, "#value < 256", "#value <= 256"),
    Mutant("255 bytes are no lock", FORCE, "#value < 256", "#value < 255"),
    Mutant("JSON is a lock", FORCE, "'^[{%[<]'", "'^[%[<]'"),
    Mutant("a list of JSON is a lock", FORCE, "'^[{%[<]'", "'^[{<]'"),
    Mutant("XML is a lock", FORCE, "'^[{%[<]'", "'^[{%[]'"),
    Mutant("brackets anywhere are data", FORCE, "'^[{%[<]'", "'[{%[<]'"),
    Mutant("every value is a lock", FORCE, "and not may_be_lock(value) then", "and false then"),
    Mutant("no value is a lock", FORCE, "and not may_be_lock(value) then", "then"),
    Mutant(
        "steal replaces data without being asked",
        &["steal"],
        "ARGV[5] ~= '1' and",
        "false and",
    ),
    Mutant("steal never replaces data", &["steal"], "ARGV[5] ~= '1' and", ""),
    Mutant(
        "force_release deletes data without being asked",
        &["force_release"],
        "ARGV[3] ~= '1'",
        "false",
    ),
    Mutant("force_release never deletes data", &["force_release"], "ARGV[3] ~= '1'", "true"),
    Mutant(
        "steal does not report a value of another type",
        &["steal"],
        "if (value or other)",
        "if value",
    ),
    // Tombstones.
    Mutant("forced commands ignore tombstones", FORCE, "if late then return late end", ""),
    Mutant(
        "a tombstone of any token stops every token",
        GIVEN_UP,
        "'!' .. token)\n  if type",
        "redis.call('ZRANGE', Q, -1, -1)[1] or '')\n  if type",
    ),
    Mutant(
        "a value that is no queue hides tombstones",
        GIVEN_UP,
        "if type(tombstone) == 'table' then return {request, 'fault', 'queue'} end",
        "if type(tombstone) == 'table' then tombstone = false end",
    ),
    // Numbers that are far ahead, and entries without number.
    Mutant("a number far ahead is confirmed", &["confirm"], "then fault = 'ahead' end", "then end"),
    Mutant(
        "a number far ahead is stored by a release",
        &["release"],
        "raises and not is_far_ahead(number, last)",
        "raises",
    ),
    Mutant("the far-ahead bound is too low", AHEAD, "+ 3600000000\n", "+ 3599999999\n"),
    Mutant("the far-ahead bound is too high", AHEAD, "+ 3600000000\n", "+ 3600000001\n"),
    Mutant("a last number ahead is ignored", AHEAD, "math.max(last or 0, wall_us())", "wall_us()"),
    // What is read of a value.
    Mutant("one byte too few is read", READING, "'GETRANGE', key, '0', '255')\n  if", FEWER),
    Mutant("only as many bytes as a token has are read", READING, "'255')\n  if", "'37')\n  if"),
    Mutant(
        "an empty value is treated as no value",
        READING,
        "return there == 1 and value or",
        "return false and",
    ),
    Mutant(
        "no value is treated as an empty one",
        READING,
        "if value ~= '' then return value end",
        "if true then return value end",
    ),
    Mutant("a waiter is listed in part", &["inspect"], "string.sub(waiters[i], 1, 256)", HALF),
];

const FORCE: &[&str] = &["steal", "force_release"];
const GIVEN_UP: &[&str] = &["acquire", "steal", "force_release"];
const AHEAD: &[&str] = &["confirm", "release"];
const READING: &[&str] = &["acquire", "resume", "release"];
const FEWER: &str = "'GETRANGE', key, '0', '254')\n  if";
const HALF: &str = "string.sub(waiters[i], 1, 30)";
