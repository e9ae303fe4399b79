-- Library: the queue is one sorted set: entries, each the text
-- "token channel grant_ttl_ms", by ticket; behind them tombstones, each "!token", by time. Beside
-- the tombstone of a token that held the lock when it was released stands "!token released".

local TOMBSTONES = 8e15 -- scores from here on are tombstones (this and ms), below are tickets
local TOMBSTONE_MS = 60000
local QUEUE_EXTRA_MS = 90000
