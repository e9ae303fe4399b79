-- Takes the lock from whoever holds it, and hands it to the next waiter.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number
-- Replies {request, 'released', value that was at the lock, 'nobody' | 'waiter' | 'more'}
--         {request, 'released type', type that was at the lock, 'nobody' | 'waiter' | 'more'}
--         {request, 'free', 'nobody' | 'waiter' | 'more'}
-- Atomic  because the answer must name the very holder whose lock was taken.
local request = ARGV[1]
local value, other = read(K)
if not value and not other then
  return not_primary(Q) or {request, 'free', serve()}
end
local next = serve()
if next ~= 'waiter' then
  redis.call('DEL', K)
  tell_all()
end
if other then return {request, 'released type', other, next} end
return {request, 'released', value, next}
