-- Library of the scripts that obey a tombstone.

-- The reply to a token that was released before: its command comes over a connection that has
-- ended. False when it was not. Without a queue there is no tombstone, so nothing is granted.
local function given_up(request, token)
  local tombstone = redis.pcall('ZSCORE', Q, '!' .. token)
  if type(tombstone) == 'table' then return {request, 'fault', 'queue'} end
  return tombstone and {request, 'cancelled'}
end
