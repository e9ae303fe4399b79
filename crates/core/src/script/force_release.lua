-- Takes the lock from any holder, and hands it to the next waiter.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token of this very call, 3 '1' to delete any value at the lock,
--         else '0'
-- Replies {request, 'released', value that was at the lock, 'nobody' | 'waiter' | 'more'}
--         {request, 'released type', type that was at the lock, 'nobody' | 'waiter' | 'more'}
--         {request, 'free', 'nobody' | 'waiter' | 'more'}
--         {request, 'held', value at the lock} no lock library writes such a value: it stays
--         {request, 'type', type at the lock} likewise
--         {request, 'cancelled'} the token was released before
--         {request, 'fault', 'queue'}
-- Atomic  because the reply must name the very holder whose lock was taken; with the tombstone in
--         the same step, or a command that arrives after its undo would take the next lock.
local request, token = ARGV[1], ARGV[2]
local late = given_up(request, token)
if late then return late end
local value, other = read(K)
if not value and not other then
  return not_primary(Q) or {request, 'free', serve()}
end
if ARGV[3] ~= '1' and not may_be_lock(value) then
  local refusal = not_primary(Q)
  if refusal then return refusal end
  if other then return {request, 'type', other} end
  return {request, 'held', value}
end
local next = serve()
if next ~= 'waiter' then
  redis.call('DEL', K)
  notify_all()
end
if other then return {request, 'released type', other, next} end
return {request, 'released', value, next}
