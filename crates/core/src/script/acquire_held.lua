-- Acquire, second part: the key holds a value, or there is a queue.

-- The place behind all others.
local function last_place()
  local place = wall_us()
  local below = '(' .. digits(TOMBSTONES)
  local top = redis.call('ZREVRANGEBYSCORE', Q, below, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if top[2] and tonumber(top[2]) >= place then place = tonumber(top[2]) + 1 end
  return math.min(place, TOMBSTONES - 1)
end

-- The ticket of the caller's entry, which is added, moved or lowered as need be: the best of all
-- that it has or brings. Kept within what a ticket can be, whatever scores others wrote.
local function join()
  if ticket == '' and previous == '' then
    -- Most come for the first time, and the entry is new.
    local place = digits(last_place())
    if redis.call('ZADD', Q, 'NX', place, entry) == 1 then return place end
  end
  local old, moved = tonumber(redis.call('ZSCORE', Q, entry)), nil
  if previous ~= '' and previous ~= entry then
    moved = tonumber(redis.call('ZSCORE', Q, previous))
    if moved then redis.call('ZREM', Q, previous) end
  end
  local none = math.huge
  local place = math.min(old or none, moved or none, tonumber(ticket) or none)
  if place == none then place = last_place() end
  place = math.max(0, math.min(place, TOMBSTONES - 1))
  if place ~= old then redis.call('ZADD', Q, digits(place), entry) end
  return digits(place)
end

-- The reply where another has the lock: the caller waits in its place, or has none.
local function held(value, place)
  local left = redis.call('PTTL', K)
  if not place then return answer({request, 'held', value, left}) end
  redis.call('PEXPIRE', Q, math.max(left, 0) + QUEUE_EXTRA_MS)
  return answer({request, 'queued', 'held', value, left, place, redis.call('ZRANK', Q, entry)})
end

local value, other = read(K)
if value == token then return answer(keep(request, token, ttl, fence_ttl, proposal)) end
local free = not value and not other
-- A lock that is held and has no queue has no tombstones either.
local late = (free or keys == 2) and given_up(request, token)
if late then return answer(late) end
local number, fault
if free then
  number, fault = next_number(proposal)
  if fault then return answer({request, 'fault', fault}) end
end
-- A value of another type is no lock, and nobody waits for it.
if other then return answer({request, 'type', other, redis.call('PTTL', K)}) end
local place = entry and join()
if not free then return held(value, place) end
