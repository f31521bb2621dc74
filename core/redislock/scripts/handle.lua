-- What an operator is shown of a token, to say whom he means: no secret, and nobody's who comes later. It
-- is made when somebody looks, so it costs those who lock nothing. A value in which nobody's
-- token stands has one of what stands there.
local function handle(token)
  return string.sub(redis.sha1hex(token), 1, 16)
end
-- The fence that a value says, as digits, or ''.
local function fence(value, at)
  return string.match(value, '^%+0*(%d+)') or string.match(value, '^[^\31]*\31(%d+)$', at + 1) or ''
end
