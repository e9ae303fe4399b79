-- Library: what is read at a key.

-- The beginning of the string at a key, false when there is none, or the server's refusal. A value
-- may have 512 MiB; what is read of it is longer than any token, so that none equals its beginning.
-- The numbers are text: a server takes longer to print them than to find the key.
local function beginning(key)
  local value = redis.pcall('GETRANGE', key, '0', '255')
  if value ~= '' then return value end
  local there = redis.pcall('EXISTS', key)
  return there == 1 and value or there ~= 0 and there
end

-- The same; nil and the type's name when it is no string.
local function read(key)
  local value = beginning(key)
  if type(value) ~= 'table' then return value end
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then return nil, redis.call('TYPE', key).ok end
  -- Any other refusal: raise it as the server says it.
  redis.call('GETRANGE', key, 0, 255)
  return redis.call('EXISTS', key) == 1 and ''
end
