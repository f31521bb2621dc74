-- Takes over a name that a release has left for a hand-off.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms
-- ARGV[3] the beginning of the value of a name that is left for this hand-off
--
-- Answers the fence as a string, or {label} of a dedup marker, or 0 if the name is not left for this
-- hand-off. Then the claim is like any other, even if its token has already taken the name over.
--
-- The lock is written last. So an error reply means that nothing was granted.
-- include mint.lua FENCE=KEYS[2]
if KEYS[3] then
  local done = redis.call('GET', KEYS[3])
  if done then
    return {done}
  end
end
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[3]) ~= ARGV[3] then
  return 0
end
local fence = mint(1, redis.call('TIME'))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
