-- Polls for waiters in queues, and keeps the queues alive. It grants nothing and changes no place:
-- a waiter that may have something to acquire gets 'go', and acquires by itself.
--
-- KEYS    per waiter: lock, queue
-- ARGV    1 request number, then per waiter: token, entry
-- Replies {request, per waiter: {'go'} | {'held', value at the lock, ms left or -1, position}}
-- Atomic  because holder, time left and position must belong together, and because a queue that
--         was seen must not end before its end is moved. PEXPIRE and not SET: a server that is out
--         of memory refuses SET.
local at = {} -- the lock that was read last: its waiters are next to each other

local function poll(lock, queue, token, entry)
  if lock ~= at.lock then
    at = {lock = lock, value = read(lock)}
  end
  -- A value of another type is no lock: the waiter's own acquisition reports that.
  if not at.value or at.value == token then return {'go'} end
  local position = redis.call('ZRANK', queue, entry)
  if not position then return {'go'} end
  if not at.left then
    local left = redis.call('PTTL', lock)
    redis.call('PEXPIRE', queue, math.max(left, 0) + QUEUE_EXTRA_MS)
    at.left = left
  end
  return {'held', at.value, at.left, position}
end

local replies, kept = {ARGV[1]}, true
for i = 1, #KEYS / 2 do
  -- pcall: an error at one lock is reported by its own acquisition, and affects no other lock.
  local polled, reply = pcall(poll, KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], ARGV[2 * i + 1])
  if not polled then reply = {'go'} end
  kept = kept and reply[1] ~= 'go'
  replies[i + 1] = reply
end
return not kept and not_primary(KEYS[2]) or replies
