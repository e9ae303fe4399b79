-- Raises the TTL of each lease that its token still holds. Never lowers, never creates.
--
-- KEYS    per lease: lock, fence
-- ARGV    1 request number, then per lease: token, TTL (ms), TTL of the fence key (ms)
-- Replies {request, per lease: {'renewed'} | {'gone'} | {'held', value} | {'type', type}
--         | {'error', the server's words}}
-- Atomic  because the comparison and the PEXPIRE must be one step: between them another client
--         could take the lock, and its TTL would be raised. PEXPIRE and not SET: a server that is
--         out of memory refuses SET, and holders must keep their locks exactly then.
local function renew(lock, fence, token, ttl, fence_ttl)
  if not is_ttl(ttl) then return {'error', 'ERR bad TTL'} end
  local value = beginning(lock)
  if type(value) == 'table' then
    if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then return {'error', value.err} end
    return {'type', redis.call('TYPE', lock).ok}
  end
  if not value then return {'gone'} end
  if value ~= token then return {'held', value} end
  raise(lock, fence, ttl, fence_ttl)
  return {'renewed'}
end

local replies, raised = {ARGV[1]}, true
for i = 1, #KEYS / 2 do
  local lock, fence = KEYS[2 * i - 1], KEYS[2 * i]
  local reply = renew(lock, fence, ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1])
  raised = raised and reply[1] == 'renewed'
  replies[i + 1] = reply
end
return not raised and not_primary(KEYS[2]) or replies
