-- What an operator sees of a token, to say which holder is meant. It is no secret, and no later
-- holder has it. It is made only when somebody looks, so locking costs nothing more. A value that
-- begins with no owner's token has a handle made from that beginning.
local function handle(token)
  return string.sub(redis.sha1hex(token), 1, 16)
end
