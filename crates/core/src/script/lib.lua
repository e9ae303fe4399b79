-- Library of the scripts; K and F are the keys of the one lock that most of them work on.

-- The string at a key, false when there is none; nil and the type's name when it is no string.
local function read(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'table' then return value end
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then return nil, redis.call('TYPE', key).ok end
  return redis.call('GET', key) -- any other refusal: raise it as the server says it
end

-- Whether a TTL is a positive integer. PEXPIRE with none above zero would delete the key.
local function is_ttl(ttl)
  return string.match(ttl, '^[1-9]%d*$') ~= nil
end

-- An error reply when this server is no primary, else false. A replica, or a primary that was made
-- one, runs a script whose condition is false without a word; it must not say that a lock is free.
local function not_primary()
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' or string.find(info, 'role:master', 1, true) then return false end
  return redis.error_reply('READONLY this server is no primary')
end

-- The number of the last grant, false when there is none; nil and a fault when it is no number.
local function last_number()
  local value, other = read(F)
  if other then return nil, 'type' end
  if not value then return false end
  local number = #value <= 16 and string.match(value, '^%d+$') and tonumber(value)
  if not number or number > 9007199254740991 then return nil, 'value' end
  return number
end

-- Fence first, then the lock: a refusal at the fence leaves no lock behind. Never without a TTL.
local function grant(token, ttl, fence_ttl)
  local last, fault = last_number()
  if fault then return nil, fault end
  local time = redis.call('TIME')
  local number = (last or 0) + 1
  local wall_us = time[1] * 1000000 + time[2]
  if wall_us > number then number = wall_us end
  if number > 9007199254740991 then return nil, 'exhausted' end
  number = string.format('%.0f', number) -- tostring would print 1.79e+15
  redis.call('SET', F, number, 'PX', fence_ttl)
  redis.call('SET', K, token, 'PX', ttl)
  return number
end

-- The reply to a token that holds the lock already: a lost reply, or a holder that comes back.
local function keep(request, token, ttl, fence_ttl)
  local number, fault = last_number()
  if fault then return {request, 'fault', fault} end
  local left = redis.call('PTTL', K)
  if number then
    if left < tonumber(ttl) then redis.call('PEXPIRE', K, ttl) end
    -- Nothing was written, so nothing was refused.
    local refusal = left >= tonumber(ttl) and not_primary()
    return refusal or {request, 'granted', string.format('%.0f', number)}
  end
  -- The counter was deleted under the holder: a new number is the only true one.
  number, fault = grant(token, ttl, fence_ttl)
  if fault then return {request, 'fault', fault} end
  if left > tonumber(ttl) then redis.call('PEXPIRE', K, left) end
  return {request, 'granted', number}
end
