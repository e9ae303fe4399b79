-- Deletes the lock's key whoever holds it.
--
-- KEYS    1 lock, 2 fence
-- ARGV    1 request number
-- Replies {request, 'released', value that was at the lock}
--         {request, 'released type', type that was at the lock}
--         {request, 'free'}
-- Atomic  because the answer must name the very holder whose key was deleted.
local request = ARGV[1]
local value, other = read(K)
if not value and not other then return not_primary() or {request, 'free'} end
redis.call('DEL', K)
if other then return {request, 'released type', other} end
return {request, 'released', value}
