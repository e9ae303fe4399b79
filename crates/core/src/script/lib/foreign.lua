-- Library of the scripts that do something by force.

-- Whether a lock library may have written a value: a string that is neither empty nor longer than
-- any known token, and no JSON or XML.
local function may_be_lock(value)
  return value and #value > 0 and #value < 256 and not string.find(value, '^[{%[<]')
end
