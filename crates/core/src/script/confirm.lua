-- Raises the last number to at least this one if this very token holds the lock; returns it.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 number, 4 TTL of the fence key (ms)
-- Replies {request, clock (us), 'ours', last number}
--         {request, clock (us), 'gone'}
--         {request, clock (us), 'held', value at the lock, ms left or -1}
--         {request, clock (us), 'type', type at the lock, ms left or -1}
--         {request, clock (us), 'fault', 'type' | 'value' | 'ahead'}
-- Atomic  because a number counts only if the node had it while the token held the lock: between
--         the comparison and the SET another client could take the lock under that very number.
local request, token, number, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local value, other = read(K)
if value ~= token then
  local refusal = not_primary(Q)
  if refusal then return refusal end
  local clock = clock_digits()
  if other then return {request, clock, 'type', other, redis.call('PTTL', K)} end
  if value then return {request, clock, 'held', value, redis.call('PTTL', K)} end
  return {request, clock, 'gone'}
end
local clock = clock_digits()
local last, fault = last_number()
if not fault and is_far_ahead(number, last) then fault = 'ahead' end
if fault then return not_primary(Q) or {request, clock, 'fault', fault} end
if last and last > tonumber(number) then number = digits(last) end
-- Written even when nothing is raised: a server that is no primary must refuse it.
redis.call('SET', F, number, 'PX', math.max(redis.call('PTTL', F), tonumber(fence_ttl)))
return {request, clock, 'ours', number}
