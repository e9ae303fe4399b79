-- Reads the holder, the remaining TTL, the number of the last grant, the waiters, and what would
-- prevent the next grant.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 the most waiters to list, 3 '1' to answer without proof that this is
--         a primary, else '0'
-- Replies {request, clock (us), 'primary' | 'replica' | 'unproved', number or '',
--         fault or '': 'type' | 'value' | 'exhausted' | 'queue', waiting, {entry, ticket, ...},
--         'free' | 'held', value, ms left or -1 | 'type', type, ms left or -1}
-- Atomic  because holder, time left, number and queue must belong together. Writes nothing.
local request, most = ARGV[1], ARGV[2]

-- Who answers, by a write that changes nothing; and the refusal of that. A refusal for lack of
-- memory, of replicas or of a disk comes from a primary, as does one of what stands at the key.
local function source()
  local refusal = redis.pcall('ZREMRANGEBYRANK', Q, 1, 0)
  if type(refusal) ~= 'table' then return 'primary' end
  local word = string.match(refusal.err, '^%u+')
  if word == 'READONLY' then return 'replica', refusal end
  if word == 'ERR' or word == 'NOPERM' then return 'unproved', refusal end
  return 'primary'
end

local from, refusal = source()
if refusal and ARGV[3] ~= '1' then return refusal end
local number = last_number()
number = number and digits(number) or ''
local _, fault = next_number()
local below = '(' .. digits(TOMBSTONES)
local waiting = redis.pcall('ZCOUNT', Q, '-inf', below)
local waiters = {}
if type(waiting) == 'number' then
  waiters = redis.call('ZRANGEBYSCORE', Q, '-inf', below, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #waiters, 2 do
    -- Others may have written a member of any length, and any score: no whole number is no ticket.
    waiters[i] = string.sub(waiters[i], 1, 256)
    waiters[i + 1] = digits(math.max(0, tonumber(waiters[i + 1])))
  end
else
  waiting, fault = 0, 'queue'
end
local reply = {request, clock_digits(), from, number, fault or '', waiting, waiters}
local value, other = read(K)
if not value and not other then
  reply[8] = 'free'
else
  reply[8], reply[9], reply[10] = other and 'type' or 'held', other or value, redis.call('PTTL', K)
end
return reply
