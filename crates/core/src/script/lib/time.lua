-- Library: TTLs, the clock of the server, and numbers as text.

-- Whether a TTL is a positive integer. PEXPIRE with none above zero would delete the key.
local function is_ttl(ttl)
  return string.match(ttl, '^[1-9]%d*$') ~= nil
end

-- The server's clock, or so many seconds ahead of it, in microseconds. The seconds are
-- added first, so that the sum is exact up to 2^53.
local function wall_us(ahead, time)
  time = time or redis.call('TIME')
  return (time[1] + (ahead or 0)) * 1000000 + time[2]
end

-- The same as text, and exact whatever the year.
local function clock_digits()
  local time = redis.call('TIME')
  return time[1] .. string.format('%06d', time[2])
end

-- An integer as text: tostring would print 1.79e+15.
local function digits(number)
  return string.format('%.0f', number)
end
