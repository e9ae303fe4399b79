-- Reads who holds the lock, what is left of the lease, the number of the last grant, and who waits.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 the most waiters to list
-- Replies {request, number or '', waiting, {entry, ticket, ...}, 'free'}
--         {request, number or '', waiting, {entry, ticket, ...}, 'held', value, ms left or -1}
--         {request, number or '', waiting, {entry, ticket, ...}, 'type', type, ms left or -1}
-- Atomic  because holder, time left, number and queue must belong together. Writes nothing.
local request, most = ARGV[1], ARGV[2]
local number = last_number()
number = number and digits(number) or ''
local below = '(' .. digits(TOMBSTONES)
local waiting = redis.pcall('ZCOUNT', Q, '-inf', below)
local waiters = {}
if type(waiting) == 'number' then
  waiters = redis.call('ZRANGEBYSCORE', Q, '-inf', below, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #waiters, 2 do
    -- Others may have written a member of any length, and any score: no whole number is no ticket.
    waiters[i] = string.sub(waiters[i], 1, 256)
    waiters[i + 1] = digits(math.max(0, tonumber(waiters[i + 1])))
  end
else
  waiting = 0
end
local value, other = read(K)
if other then return {request, number, waiting, waiters, 'type', other, redis.call('PTTL', K)} end
if value then return {request, number, waiting, waiters, 'held', value, redis.call('PTTL', K)} end
return not_primary(Q) or {request, number, waiting, waiters, 'free'}
