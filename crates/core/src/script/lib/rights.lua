-- Library of the scripts that begin a lease: where the caller asks for it, by a last argument
-- 'prove', they first make sure that the user may run what later steps of a lease need. A lease
-- that could not be renewed or released would be found out when the work is under way. Servers
-- before Redis 7 do not answer such questions.
if ARGV[#ARGV] == 'prove' then
  ARGV[#ARGV] = nil
  local needed = 'get getrange type pttl time set pexpire del exists zadd zrem zrank zscore zrange '
    .. 'zrevrangebyscore zpopmin zremrangebyrank zremrangebyscore'
  for command in string.gmatch(redis.acl_check_cmd and needed or '', '%a+') do
    if not redis.acl_check_cmd(command, Q) then
      return redis.error_reply("NOPERM this user has no permissions to run the '" .. command
        .. "' command, which a lock needs later")
    end
  end
end
