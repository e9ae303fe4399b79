-- Raises the TTL, never lowers it, if this very token holds the lock; returns its number.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms)
-- Replies {request, 'granted', number}
--         {request, 'free'}
--         {request, 'held', value at the lock, ms left or -1}
--         {request, 'type', type at the lock, ms left or -1}
--         {request, 'fault', 'type' | 'value' | 'exhausted'}
-- Atomic  because the number must be that of the lease whose TTL is raised. Unlike acquire it never
--         creates a key: a lease that has ended is not acquired again as if it had never ended.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
local value, other = read(K)
if value == token then return keep(request, token, ttl, fence_ttl) end
local refusal = not_primary(Q)
if refusal then return refusal end
if other then return {request, 'type', other, redis.call('PTTL', K)} end
if value then return {request, 'held', value, redis.call('PTTL', K)} end
return {request, 'free'}
