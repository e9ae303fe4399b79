-- Library of the scripts that raise a TTL.

-- Gives a lock at least this TTL, and its number a life beyond it. Written even when nothing is
-- raised: a server that is no primary must refuse it.
local function raise(lock, fence, ttl, fence_ttl)
  local has = redis.call('PTTL', lock)
  if has < 9007199254740992 then -- beyond 2^53 Lua would round it
    redis.call('PEXPIRE', lock, math.max(has, tonumber(ttl)))
  end
  local left = redis.pcall('PTTL', fence)
  if type(left) == 'number' and 2 * left < tonumber(fence_ttl) then
    redis.pcall('PEXPIRE', fence, fence_ttl)
  end
end
