-- Library of the checked scripts, behind the op: every reply has two more fields, a word and
-- milliseconds.
-- 'eligible', 'opened', 'new' | 'changed' (closed, ms left), 'hidden' or 'unusable' (closed)
local word, left = eligibility()
local reply = op()
if reply.err then return reply end
reply[#reply + 1] = word
reply[#reply + 1] = left
return reply
