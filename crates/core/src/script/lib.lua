-- Library of the scripts; K, F and Q are the keys of the one lock that most of them work on.

-- The beginning of the string at a key, false when there is none, or the server's refusal. A value
-- may have 512 MiB; what is read of it is longer than any token, so that none equals its beginning.
-- The numbers are text: a server takes longer to print them than to find the key.
local function beginning(key, begun)
  local value = begun or redis.pcall('GETRANGE', key, '0', '255')
  if value ~= '' then return value end
  local there = redis.pcall('EXISTS', key)
  return there == 1 and value or there ~= 0 and there
end

-- The same; nil and the type's name when it is no string.
local function read(key, begun)
  local value = beginning(key, begun)
  if type(value) ~= 'table' then return value end
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then return nil, redis.call('TYPE', key).ok end
  -- Any other refusal: raise it as the server says it.
  redis.call('GETRANGE', key, 0, 255)
  return redis.call('EXISTS', key) == 1 and ''
end

-- Whether a lock library may have written a value: a string that is neither empty nor longer than
-- any known token, and no JSON or XML.
local function may_be_lock(value)
  return value and #value > 0 and #value < 256 and not string.find(value, '^[{%[<]')
end

-- The reply to a token that was given up before: its command comes over a connection that has
-- ended. False when it was not. Without a queue there is no tombstone, so nothing is granted.
local function given_up(request, token)
  local tombstone = redis.pcall('ZSCORE', Q, '!' .. token)
  if type(tombstone) == 'table' then return {request, 'fault', 'queue'} end
  return tombstone and {request, 'cancelled'}
end

-- Whether a TTL is a positive integer. PEXPIRE with none above zero would delete the key.
local function is_ttl(ttl)
  return string.match(ttl, '^[1-9]%d*$') ~= nil
end

-- The server's refusal of a write because it is no primary, else false.
local function refusal_of(reply)
  return type(reply) == 'table' and string.sub(reply.err, 1, 8) == 'READONLY' and reply
end

-- The server's refusal when it is no primary, else false. A replica, or a primary that became one,
-- runs a script that writes nothing without a word; it must not say that a lock is free. So the
-- script tries a write that changes nothing, at one of our own derived keys.
local function not_primary(key)
  return refusal_of(redis.pcall('ZREMRANGEBYRANK', key, 1, 0))
end

-- The server's clock, or so many seconds ahead of it, in microseconds.
local function wall_us(ahead)
  local time = redis.call('TIME')
  return (time[1] + (ahead or 0)) * 1000000 + time[2]
end

-- The same as text, and exact whatever the year.
local function clock_digits()
  local time = redis.call('TIME')
  return time[1] .. string.format('%06d', time[2])
end

-- An integer as text: tostring would print 1.79e+15.
local function digits(number)
  return string.format('%.0f', number)
end

-- The number of the last grant, false when there is none; nil and a fault when it is no number.
local function last_number()
  local value, other = read(F)
  if other then return nil, 'type' end
  if not value then return false end
  local number = string.match(value, '^[1-9]%d*$') and tonumber(value)
  if not number or number > 9007199254740991 then return nil, 'value' end
  return number
end

-- The number of the next grant, as text; nil and a fault when there can be none. At least the clock
-- or, where several nodes vote, what is proposed; an hour at most from the clock.
local function next_number(proposal)
  local last, fault = last_number()
  if fault then return nil, fault end
  local number = (last or 0) + 1
  local least = wall_us()
  if proposal and proposal ~= '' then
    least = math.max(wall_us(-3600), math.min(tonumber(proposal), wall_us(3600)))
  end
  if least > number then number = least end
  if number > 9007199254740991 then return nil, 'exhausted' end
  return digits(number)
end

-- Whether a number is too far ahead to be written: by more than an hour of the clock and of the
-- last number. One bad counter of several must not become everybody's.
local function is_far_ahead(number, last)
  return tonumber(number) > math.max(last or 0, wall_us()) + 3600000000
end

-- Fence first, then the lock: a refusal at the fence leaves no lock behind. Never without a TTL.
local function set(token, ttl, fence_ttl, number)
  redis.call('SET', F, number, 'PX', fence_ttl)
  redis.call('SET', K, token, 'PX', ttl)
end

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

-- The reply to a token that holds the lock already: a confirmation, a lost reply, a return.
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
