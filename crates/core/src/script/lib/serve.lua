-- Library of the scripts that hand a lock to the next waiter.

local MAX_SERVED = 64
local MAX_WATCH_CANDIDATES = 16

-- The server's clock, in milliseconds.
local function wall_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function parse(member)
  local token, channel, grant_ttl = string.match(member, '^([!-~]+) ([!-~]+) ([1-9]%d*)$')
  if grant_ttl and #grant_ttl < 16 then return token, channel, grant_ttl end
end

-- Makes the next live waiter of another connection the successor watch of the one served. Where
-- that is the caller, it gets the message too: else it cannot know the suspect. Returns whether
-- there is one.
local function name_successor_watch(me, granted, grant_ttl)
  local index = 0
  for _ = 1, MAX_WATCH_CANDIDATES do
    local entry = redis.pcall('ZRANGE', Q, index, index, 'WITHSCORES')
    if entry.err or #entry == 0 or tonumber(entry[2]) >= TOMBSTONES then return false end
    local token, channel = parse(entry[1])
    if channel == granted then
      index = index + 1
    elseif token and notify(channel, 'w ' .. token .. ' ' .. grant_ttl .. ' ' .. granted) then
      return true
    elseif token and token == me then
      return true -- it receives nothing, but it sent this request: it is alive
    else
      redis.call('ZREM', Q, entry[1])
    end
  end
  return false
end

-- Puts what was popped back. Popping the last member deletes the queue, and its end with it.
local function put_back(head)
  redis.call('ZADD', Q, head[2], head[1])
  redis.call('PEXPIRE', Q, QUEUE_EXTRA_MS)
end

-- Hands the lock, which is free or being released, to the next live waiter. Returns
-- 'nobody', 'me', 'waiter', or 'more' when many dead ones were dropped and there are more. Each
-- dead entry is dropped at first sight, and costs once: its client brings it back. ZPOPMIN comes
-- before SET, so a server that is out of memory still hands locks over.
local function serve(me, suspect, proposal)
  local number, fault
  for _ = 1, MAX_SERVED do
    local head = redis.pcall('ZPOPMIN', Q) -- pcall: another's value there must not stop a release
    if head.err or #head == 0 then return 'nobody' end
    local member, score = head[1], tonumber(head[2])
    if score >= TOMBSTONES then
      -- Only tombstones are left.
      if score - TOMBSTONES + TOMBSTONE_MS > wall_ms() then
        put_back(head)
        return 'nobody'
      end
    else
      local token, channel, grant_ttl = parse(member)
      if token and token == me then return 'me' end
      if token and channel ~= suspect then
        if not number then number, fault = next_number(proposal) end
        if fault then
          put_back(head)
          return 'nobody'
        end
        if notify(channel, 'g ' .. token) then
          set(token, grant_ttl, digits(tonumber(grant_ttl) + 86400000), number)
          name_successor_watch(me, channel, grant_ttl)
          return 'waiter'
        end
      end
    end
  end
  return 'more'
end
