-- Library: messages to those who wait.

-- Tells a connection, if it listens to its channel. NUMSUB first: PUBLISH would also count those
-- who listen to a pattern. pcall: a server that permits no channel still releases locks.
local function tell(channel, message)
  local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if listening.err or listening[2] == 0 then return false end
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'number' and heard > 0
end

-- Tells all who wait for a lock of several nodes that it was given up.
local function tell_all()
  tell('tenure:free:' .. K, 'f')
end
