-- Library of the scripts of several servers that vote: may this server have lost locks? A
-- request that is checked brings the marker's key and five arguments behind those of its op, which
-- are taken away here, so that the op sees only its own.
local MARKER, last = table.remove(KEYS), #ARGV
local span, client_ms = tonumber(ARGV[last - 4]), tonumber(ARGV[last - 3])
local database, is_durable, mode = tonumber(ARGV[last - 2]), ARGV[last - 1] == '1', ARGV[last]
for i = last, last - 4, -1 do ARGV[i] = nil end

local function whole(digits)
  local number = #digits <= 16 and tonumber(digits)
  return number and number < 9007199254740992 and number
end

-- Whether what the server grants and keeps counts as a vote: a word, and the milliseconds that are
-- left where it is closed. pcall: a server that is out of memory, or a replica, refuses the write,
-- and must still renew, or refuse by itself. What was not written is decided again by the next
-- request; a server that cannot write down that it is closed stays closed.
local function eligibility()
  local text = redis.pcall('GET', MARKER)
  if type(text) == 'table' then return 'unusable', '' end
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then return 'hidden', '' end
  if text then
    -- Mostly it says so at once. To read all of it takes as long as the rest.
    local db, id, open, longest = string.match(text, '^(%d+) (%x+) (%d+) (%d+) ')
    if id and string.find(info, 'master_replid:' .. id .. '\r', 1, true) and whole(db) == database
      and span <= (whole(open) or -1) and span <= (whole(longest) or -1) then
      return 'eligible', ''
    end
  end
  local id = string.match(info, 'master_replid:(%x+)')
  if not id then return 'hidden', '' end
  local db, replid, open, longest, floor, cause, run, since, client_since
  if text then
    db, replid, open, longest, floor, cause, run, since, client_since = string.match(
      text, '^(%d+) (%x+) (%d+) (%d+) (%d+) (%l+) (%x+) (%d+) (%d+)$')
    if cause == 'new' or cause == 'changed' then
      db, open, longest, floor = whole(db), whole(open), whole(longest), whole(floor)
      since, client_since = whole(since), whole(client_since)
    end
  end
  local is_sound = (cause == 'new' or cause == 'changed') and db and open and longest and floor
    and since and client_since
  local is_known = is_sound and db == database and replid == id
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if not is_known then
    local own = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or '0'
    -- A durable server that restarted; under the same run it was a replica meanwhile.
    local is_kept = is_sound and db == database and is_durable and run ~= own
      and string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true)
    if not is_kept then
      cause, open, longest = text and 'changed' or 'new', 0, is_sound and longest or 0
      floor, since, client_since = longest, now, client_ms
    end
    replid, run = id, own
  end
  longest = math.max(longest, span)
  local word, left = 'eligible', ''
  if span > open and mode == 'open' and cause == 'new' then
    word, open = 'opened', 9007199254740991
  elseif span > open then
    -- Enough time must have passed by both clocks. Nobody waits longer than that from its own first
    -- visit, wherever a clock stood before.
    local needed = math.max(span, floor)
    since, client_since = math.min(since, now), math.min(client_since, client_ms)
    local passed = math.min(now - since, client_ms - client_since)
    if passed >= needed then
      open = needed
    else
      word, left = cause, string.format('%.0f', needed - passed)
    end
  end
  local written = string.format('%.0f %s %.0f %.0f %.0f %s %s %.0f %.0f', database, replid, open,
    longest, floor, cause, run, since, client_since)
  if mode ~= 'peek' and written ~= text then redis.pcall('SET', MARKER, written) end
  return word, left
end
