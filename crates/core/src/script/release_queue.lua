-- Release, second part: there is a queue, the lock is not held by the token, or several nodes vote.

local released = '!' .. token .. ' released'
local marked, is_already = 0, false
-- pcall: none of this may keep the lock from being released. ZREMRANGEBYSCORE first: after it, a
-- server that is out of memory takes the tombstone too.
if ARGV[3] == '1' then
  local now = wall_ms()
  local old = digits(TOMBSTONES + now - TOMBSTONE_MS)
  redis.pcall('ZREMRANGEBYSCORE', Q, digits(TOMBSTONES), old)
  local score = digits(TOMBSTONES + now)
  local members = {score, '!' .. token, score, released}
  marked = redis.pcall('ZADD', Q, unpack(members, 1, value == token and 4 or 2))
  if type(marked) == 'number' and redis.call('PTTL', Q) < QUEUE_EXTRA_MS then
    redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS)
  end
end
-- Lua's stack has no room for many thousands at once.
for i = 6, #ARGV, 1000 do redis.pcall('ZREM', Q, unpack(ARGV, i, math.min(i + 999, #ARGV))) end
if value ~= token then
  -- A write that changes nothing, as in not_primary, which also reads.
  local already = redis.pcall('ZADD', Q, 'XX', 'INCR', 0, released)
  local refusal = refusal_of(already)
  if refusal then return refusal end
  -- No success without the tombstone: the caller must repeat the release. Only where no queue
  -- can be is none needed, since nothing is granted there.
  if type(marked) == 'table' and string.sub(marked.err, 1, 9) ~= 'WRONGTYPE' then return marked end
  is_already = type(already) == 'string'
  if is_already and (other or value) then return {request, 'already', 'nobody'} end
  if other then return {request, 'type', other} end
  if value then return {request, 'held', value} end
elseif number ~= '' then
  -- So that all nodes give the same number next. pcall, as above.
  local last, fault = last_number()
  local raises = not fault and (not last or last < tonumber(number))
  if raises and not is_far_ahead(number, last) then
    local left = redis.pcall('PTTL', F)
    left = type(left) == 'number' and left or 0
    redis.pcall('SET', F, number, 'PX', math.max(left, 86400000))
  end
end
local next
if value and ARGV[4] ~= '0' and name_successor_watch(nil, '-', ARGV[4]) then
  next = 'yielded'
else
  next = serve()
end
if value and next ~= 'waiter' then
  redis.call('DEL', K)
  -- Where several nodes vote nobody queues. An undone attempt sends no notification: waiters would
  -- wake each other without end.
  if number ~= '' then notify_all() end
end
if value then return {request, 'released', token, next} end
return {request, is_already and 'already' or 'free', next}
