-- Deletes the lock's key if the token holds it.
--
-- KEYS    1 lock, 2 fence
-- ARGV    1 request number, 2 token
-- Replies {request, 'released', token}
--         {request, 'free'}
--         {request, 'held', value at the lock}
--         {request, 'type', type at the lock}
-- Atomic  because the comparison and the DEL must be one step: between them the key could end and
--         another client take the lock, and its key would be deleted. The wait queue's hand-over
--         comes in place of the DEL.
local request, token = ARGV[1], ARGV[2]
local value, other = read(K)
if value == token then
  redis.call('DEL', K)
  return {request, 'released', token}
end
local refusal = not_primary()
if refusal then return refusal end
if other then return {request, 'type', other} end
if value then return {request, 'held', value} end
return {request, 'free'}
