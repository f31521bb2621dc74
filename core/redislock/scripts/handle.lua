-- What an operator sees of a token, to say which holder is meant. It is no secret, and no later
-- holder has it. It is made only when somebody looks, so locking costs nothing more. A value that
-- begins with no owner's token has a handle made from that beginning.
local function handle(token)
  return string.sub(redis.sha1hex(token), 1, 16)
end
-- The fence in a value, as digits, or ''. Where a name is kept, \31 and since when follow, in ms.
local function fence(value, at)
  return string.match(value, '^%+0*(%d+)') or string.match(value, '^[^\31]*\31(%d+)\31?%d*$', at + 1) or ''
end
