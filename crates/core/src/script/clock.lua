-- Returns the server's clock.
--
-- KEYS    none
-- ARGV    1 request number
-- Replies {request, clock (us)}
-- Atomic  being one command; a script, because its reply begins with the request number. A replica
--         may answer: its clock is a clock.
return {ARGV[1], clock_digits()}
