-- Takes the lock if it is free and has no waiters; raises its TTL, never lowers it, if this very
-- token holds it (a waiter confirms so). Else joins the queue, if the caller waits.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 TTL (ms), 4 TTL of the fence key (ms), 5 proposal or '';
--         for a caller that waits: 6 its entry, 7 ticket or '', 8 its entry of an earlier
--         connection or '', 9 suspect channel or ''
-- Replies {request, 'granted', number}
--         {request, 'held', value at the lock, ms left or -1}
--         {request, 'type', type at the lock, ms left or -1}
--         {request, 'queued', 'held', value, ms left or -1, ticket, position}
--         {request, 'cancelled'} the token was released before
--         {request, 'more'} many dead waiters were dropped: ask again at once
--         {request, 'fault', 'type' | 'value' | 'exhausted' | 'queue'}
--         each, where there is a proposal, with two more: last number or '', clock (us)
-- Atomic  because the check, the queue's turn, the number and the value with its TTL must be one
--         step: between a check and a SET another client could take the lock, and a crash between
--         a SET and an EXPIRE would leave it held forever.
local request, token, ttl, fence_ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local proposal, entry, ticket, previous, suspect = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]

-- The reply; where several nodes vote, with the last number and the clock.
local function answer(reply, number)
  if proposal == '' then return reply end
  local last = not number and last_number()
  reply[#reply + 1] = number or last and digits(last) or ''
  reply[#reply + 1] = clock_digits()
  return reply
end

if not is_ttl(ttl) then return redis.error_reply('ERR bad TTL') end
-- The common case, before anything is defined that it does not need: no lock and no queue.
local keys = redis.call('EXISTS', K, Q)
if keys == 0 then
  local number, fault = next_number(proposal)
  if fault then return answer({request, 'fault', fault}) end
  set(token, ttl, fence_ttl, number)
  return answer({request, 'granted', number}, number)
end
