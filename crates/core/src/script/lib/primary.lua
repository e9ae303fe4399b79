-- Library: whether this is a primary.

-- The server's refusal of a write because it is no primary, else false.
local function refusal_of(reply)
  return type(reply) == 'table' and string.sub(reply.err, 1, 8) == 'READONLY' and reply
end

-- The server's refusal when it is no primary, else false. A replica, or a primary that became one,
-- runs a script that writes nothing without a word; it must not say that a lock is free. So the
-- script tries a write that changes nothing, at one of our own derived keys.
local function not_primary(key)
  return refusal_of(redis.pcall('ZREMRANGEBYRANK', key, 1, 0))
end
