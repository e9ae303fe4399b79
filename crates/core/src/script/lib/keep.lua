-- Library of the scripts that a holder may repeat.

-- The reply to a token that holds the lock already: a confirmation, or a repeated request.
local function keep(request, token, ttl, fence_ttl, proposal)
  local number, fault = last_number()
  if fault then return {request, 'fault', fault} end
  if number then
    raise(K, F, ttl, fence_ttl)
    return {request, 'granted', digits(number)}
  end
  -- The counter was deleted under the holder: a new number is the only true one.
  local left = redis.call('PTTL', K)
  number, fault = next_number(proposal)
  if fault then return {request, 'fault', fault} end
  set(token, ttl, fence_ttl, number)
  if left > tonumber(ttl) then redis.call('PEXPIRE', K, left) end
  return {request, 'granted', number}
end
