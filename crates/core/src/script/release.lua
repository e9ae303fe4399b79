-- Hands the lock to the next waiter if the token holds it, or deletes the key if nobody waits; and
-- takes the token out of the queue. A free lock is handed over as well.
--
-- KEYS    1 lock, 2 fence, 3 queue
-- ARGV    1 request number, 2 token, 3 '1' to leave a tombstone else '0', 4 how long to leave the
--         lock free first (ms) or '0', 5 number of the lease where several nodes vote or '',
--         6... the token's entries
-- Replies {request, 'released', token, 'nobody' | 'waiter' | 'yielded' | 'more'}
--         {request, 'free', 'nobody' | 'waiter' | 'more'}
--         {request, 'already', 'nobody' | 'waiter' | 'more'}: an earlier release ended it
--         {request, 'held', value at the lock}
--         {request, 'type', type at the lock}
-- Atomic  because the comparison and the hand-over or DEL must be one step: between them the key
--         could end and another client take the lock, and its key would be deleted.
local request, token, number = ARGV[1], ARGV[2], ARGV[5]
local value, other = read(K)
-- The common case, before anything is defined that it does not need: there is no queue, and several
-- nodes that vote have the number of this lease already. pcall: a user without these
-- commands still releases the lock.
if value == token and ARGV[3] == '0'
  and (number == '' or redis.pcall('GETRANGE', F, '0', '255') == number)
  and redis.pcall('EXISTS', Q) == 0 then
  redis.call('DEL', K)
  if number ~= '' then notify_all() end
  return {request, 'released', token, 'nobody'}
end
