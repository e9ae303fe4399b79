-- Library of the scripts that write a number that another node gave.

-- Whether a number is too far ahead to be written: by more than an hour of the clock and of the
-- last number. One bad counter of several must not become everybody's.
local function is_far_ahead(number, last)
  return tonumber(number) > math.max(last or 0, wall_us()) + 3600000000
end
