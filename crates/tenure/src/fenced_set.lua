-- Sets a resource's value unless the fencing number is stale. For the resource's own server.
--
-- KEYS    1 resource, 2 where its largest number and a digest of that holder's token are kept
-- ARGV    1 fencing number, 2 token, 3 value
-- Replies 1 set, 0 stale
-- Atomic  because a newer holder could come between the check and the write.
-- The token can release the lock, so it is not kept where others can read it.
local seen = redis.call('HMGET', KEYS[2], 'number', 'holder')
local largest, mine = tonumber(seen[1] or '-1'), tonumber(ARGV[1])
local holder = redis.sha1hex(ARGV[2])
if mine < largest or (mine == largest and seen[2] ~= holder) then return 0 end
redis.call('HSET', KEYS[2], 'number', ARGV[1], 'holder', holder)
redis.call('SET', KEYS[1], ARGV[3])
return 1
