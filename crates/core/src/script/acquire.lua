-- Takes the lock if it is free and nobody waits for it; raises its TTL, never lowers it, if this
-- very token holds it (so a waiter confirms). Else joins the queue, if the caller waits.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms), 5 proposal or '';
--         for a caller that waits: 6 its entry, 7 ticket or '', 8 its entry of an earlier
--         connection or '', 9 suspect channel or ''
-- Replies {request, 'granted', number}
--         {request, 'held', value at the lock, ms left or -1}
--         {request, 'type', type at the lock, ms left or -1}
--         {request, 'queued', 'held', value, ms left or -1, ticket, position}
--         {request, 'cancelled'} the token was given up before
--         {request, 'more'} many dead waiters were dropped: ask again at once
--         {request, 'fault', 'type' | 'value' | 'exhausted' | 'queue'}
--         each, where there is a proposal, with two more: last number or '', clock (us)
-- Atomic  because the check, the queue's turn, the number and the value with its TTL must be one
--         step: between a check and a SET another client could take the lock, and a crash between
--         a SET and an EXPIRE would leave it held for ever.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local proposal, entry, ticket, previous, suspect = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]

-- The reply; where several nodes vote, with what the client reckons with.
local function tell(reply)
  if proposal == '' then return reply end
  local last = last_number()
  reply[#reply + 1] = last and digits(last) or ''
  reply[#reply + 1] = clock_digits()
  return reply
end

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

if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
local begun = redis.pcall('GETRANGE', K, '0', '255')
-- One call for both: most locks are free and have no queue.
local alone = begun == '' and redis.call('EXISTS', K, Q) == 0
local value, other
if not alone then value, other = read(K, begun) end
if value == token then return tell(keep(request, token, ttl, fence_ttl, proposal)) end
local free = not value and not other
local queued = not alone and (not free or redis.call('EXISTS', Q) == 1)
local late = queued and given_up(request, token)
if late then return tell(late) end
local number, fault
if free then
  number, fault = next_number(proposal)
  if fault then return tell({request, 'fault', fault}) end
end
local place = entry and queued and not other and join()
if free then
  -- Only where there is a queue: after a ZPOPMIN a server that is out of memory takes the SET.
  local next = queued and serve(token, suspect, proposal) or 'nobody'
  if next == 'nobody' or next == 'me' then
    set(token, ttl, fence_ttl, number)
    return tell({request, 'granted', number})
  end
  if next == 'more' then
    if place then redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS) end
    return tell({request, 'more'})
  end
  value = redis.call('GET', K)
end
local left = redis.call('PTTL', K)
-- A value of another type is no lock, and nobody waits for it.
if other then return tell({request, 'type', other, left}) end
if not place then return tell({request, 'held', value, left}) end
redis.call('PEXPIRE', Q, math.max(left, 0) + QUEUE_EXTRA_MS)
return tell({request, 'queued', 'held', value, left, place, redis.call('ZRANK', Q, entry)})
