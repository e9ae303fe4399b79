-- Acquire, third part: the lock is free, and others may be before the caller in the queue. After a
-- ZPOPMIN a server that is out of memory takes the SET.
local next = serve(token, suspect, proposal)
if next == 'nobody' or next == 'me' then
  set(token, ttl, fence_ttl, number)
  return answer({request, 'granted', number})
end
if next == 'more' then
  if place then redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS) end
  return answer({request, 'more'})
end
return held(redis.call('GET', K), place)
