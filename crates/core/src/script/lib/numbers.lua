-- Library: fencing numbers, and the grant that writes one.

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
  local time = redis.call('TIME')
  local least = wall_us(0, time)
  if proposal and proposal ~= '' then
    local most = wall_us(3600, time)
    least = math.max(wall_us(-3600, time), math.min(tonumber(proposal), most))
  end
  if least > number then number = least end
  if number > 9007199254740991 then return nil, 'exhausted' end
  return digits(number)
end

-- Fence first, then the lock: a refusal at the fence leaves no lock behind. Never without a TTL.
local function set(token, ttl, fence_ttl, number)
  redis.call('SET', F, number, 'PX', fence_ttl)
  redis.call('SET', K, token, 'PX', ttl)
end
