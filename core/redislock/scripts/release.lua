-- Frees a name if the token still owns it, leaves a dedup marker if asked to, and tells
-- those who wait.
--
-- KEYS[1] the lock    KEYS[2] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the channel
-- ARGV[3] the marker's label    ARGV[4] the marker's window in ms
--
-- Answers 1, or 0 for "not the owner".
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] then
  local mine = string.match(ARGV[1], '^[^\31]*\31')
  if not value or string.sub(value, 1, #mine) ~= mine then
    return 0
  end
end
-- DEL comes first: a script that begins with SET is refused under maxmemory.
redis.call('DEL', KEYS[1])
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
-- Without permission for the channel, waiters find out by themselves.
redis.pcall('PUBLISH', ARGV[2], '')
return 1
