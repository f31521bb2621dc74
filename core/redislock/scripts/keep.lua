-- Ends an ownership. The name stays taken for a while, by nobody, or for a hand-off.
--
-- KEYS[1] the lock    KEYS[2] the dedup marker, only if asked for
-- ARGV[1] the token and magic byte    ARGV[2] the value that no token owns, with the same label and a magic byte:
-- since when, in ms, follows
-- ARGV[3] for how long, in ms
-- ARGV[4] the marker's label    ARGV[5] the marker's window in ms
--
-- Answers 1, or 0 for "not the owner", or the text of an error if everything is done except the
-- marker. Nobody in the queue is told: the name is not free.
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
-- PEXPIRE comes first: under maxmemory, a script whose first write is SET is refused. If SET fails all
-- the same, the token still owns the name, and only its TTL has changed.
local time = redis.call('TIME')
local since = time[1] .. string.sub('00000' .. time[2], -6, -4)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2] .. since, 'PX', ARGV[3])
if KEYS[2] then
  return redis.pcall('SET', KEYS[2], ARGV[4], 'PX', ARGV[5]).err or 1
end
return 1
