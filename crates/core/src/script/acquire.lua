-- Takes the lock if it is free; raises its TTL, never lowers it, if this very token holds it.
--
-- KEYS    1 lock, 2 fence
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms)
-- Replies {request, 'granted', number}
--         {request, 'held', value at the lock, ms left or -1}
--         {request, 'type', type at the lock, ms left or -1}
--         {request, 'fault', 'type' | 'value' | 'exhausted'}
-- Atomic  because the check, the number and the value with its TTL must be one step: between a
--         check and a SET another client could take the lock, and a crash between a SET and an
--         EXPIRE would leave it held for ever. The wait queue's turn comes before the grant.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
local value, other = read(K)
if other then return {request, 'type', other, redis.call('PTTL', K)} end
if value == token then return keep(request, token, ttl, fence_ttl) end
if value then return {request, 'held', value, redis.call('PTTL', K)} end
local number, fault = grant(token, ttl, fence_ttl)
if fault then return {request, 'fault', fault} end
return {request, 'granted', number}
