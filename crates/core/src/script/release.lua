-- Hands the lock to the next waiter if the token holds it, or deletes the key if nobody waits; and
-- takes the token out of the queue. A lock that is free is handed on all the same.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 '1' to leave a tombstone else '0', 4... the token's entries
-- Replies {request, 'released', token, 'nobody' | 'waiter' | 'more'}
--         {request, 'free', 'nobody' | 'waiter' | 'more'}
--         {request, 'held', value at the lock}
--         {request, 'type', type at the lock}
-- Atomic  because the comparison and the hand-over or DEL must be one step: between them the key
--         could end and another client take the lock, and its key would be deleted.
local request, token = ARGV[1], ARGV[2]
local value, other = read(K)
if ARGV[3] == '1' then -- pcall: none of this may keep the lock from being released
  local now = math.floor(wall_us() / 1000)
  local old = digits(TOMBSTONES + now - TOMBSTONE_MS)
  redis.pcall('ZREMRANGEBYSCORE', Q, digits(TOMBSTONES), old)
  redis.pcall('ZADD', Q, digits(TOMBSTONES + now), '!' .. token)
  local left = redis.call('PTTL', Q)
  if left ~= -2 and left < QUEUE_EXTRA_MS and redis.call('TYPE', Q).ok == 'zset' then
    redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS)
  end
end
if ARGV[4] then redis.pcall('ZREM', Q, unpack(ARGV, 4)) end
if value ~= token then
  local refusal = not_primary()
  if refusal then return refusal end
  if other then return {request, 'type', other} end
  if value then return {request, 'held', value} end
end
local next = serve()
if value and next ~= 'waiter' then redis.call('DEL', K) end
if value then return {request, 'released', token, next} end
return {request, 'free', next}
