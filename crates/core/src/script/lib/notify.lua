-- Library: messages to waiters.

-- Sends a message to a connection, if it subscribes to its channel. NUMSUB first: PUBLISH would
-- also count subscribers of patterns. pcall: a server that permits no channel still releases locks.
local function notify(channel, message)
  local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if listening.err or listening[2] == 0 then return false end
  local receivers = redis.pcall('PUBLISH', channel, message)
  return type(receivers) == 'number' and receivers > 0
end

-- Notifies all waiters of a lock of several nodes that it was released.
local function notify_all()
  notify('tenure:free:' .. K, 'f')
end
