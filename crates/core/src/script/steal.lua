-- Takes the lock from any holder. Its waiters go on waiting.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms), 5 '1' to replace
--         any value at the lock, else '0'
-- Replies {request, 'granted', number}
--         {request, 'held', value at the lock, ms left or -1} no lock library writes such a value
--         {request, 'type', type at the lock, ms left or -1} likewise
--         {request, 'cancelled'} the token was released before
--         {request, 'fault', 'type' | 'value' | 'exhausted' | 'queue'}
-- Atomic  because the number and the value with its TTL must be one step; SET replaces a value of
--         any type. With the tombstone in the same step, or a command that arrives after its
--         undo would take the lock from the next holder.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
local late = given_up(request, token)
if late then return late end
local value, other = read(K)
if (value or other) and ARGV[5] ~= '1' and not may_be_lock(value) then
  local refusal = not_primary(Q)
  if refusal then return refusal end
  if other then return {request, 'type', other, redis.call('PTTL', K)} end
  return {request, 'held', value, redis.call('PTTL', K)}
end
local number, fault = next_number()
if fault then return {request, 'fault', fault} end
set(token, ttl, fence_ttl, number)
return {request, 'granted', number}
