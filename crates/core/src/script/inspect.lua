-- Reads who holds the lock, what is left of the lease, and the number of the last grant.
--
-- KEYS    1 lock, 2 fence
-- ARGV    1 request number
-- Replies {request, number or '', 'free'}
--         {request, number or '', 'held', value at the lock, ms left or -1}
--         {request, number or '', 'type', type at the lock, ms left or -1}
-- Atomic  because holder, time left and number must belong together. Writes nothing.
local request = ARGV[1]
local number = last_number()
number = number and string.format('%.0f', number) or ''
local value, other = read(K)
if other then return {request, number, 'type', other, redis.call('PTTL', K)} end
if not value then return not_primary() or {request, number, 'free'} end
return {request, number, 'held', value, redis.call('PTTL', K)}
