-- Takes the lock whoever holds it. Those who wait go on waiting.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms)
-- Replies {request, 'granted', number}
--         {request, 'fault', 'type' | 'value' | 'exhausted'}
-- Atomic  because the number and the value with its TTL must be one step; SET replaces a value of
--         any type.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
local number, fault = next_number()
if fault then return {request, 'fault', fault} end
set(token, ttl, fence_ttl, number)
return {request, 'granted', number}
