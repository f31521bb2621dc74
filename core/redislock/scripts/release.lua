-- Frees a name if the token still owns it, leaves a dedup marker if asked to, and serves the first
-- place in the queue.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the beginning of the channels' names
-- ARGV[3] the marker's label    ARGV[4] the marker's window in ms
--
-- While the slot moves, a release comes with the lock alone: several keys may be at two nodes then.
--
-- Answers 1, or 0 for "not the owner", or the text of an error if the name is free but the marker
-- could not be left.
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] then
-- include value.lua
  local mine = owner(ARGV[1])
  if not value or string.sub(value, 1, #mine) ~= mine then
    return 0
  end
end
-- DEL comes first: under maxmemory, a script whose first write is SET is refused.
redis.call('DEL', KEYS[1])
local unmarked = KEYS[5] and redis.pcall('SET', KEYS[5], ARGV[3], 'PX', ARGV[4]).err
if KEYS[2] and redis.pcall('EXISTS', KEYS[2]) == 1 then
  pcall(function() -- an error here would hide that the name is free
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[4]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
    serve(ARGV[2], clock())
  end)
end
return unmarked or 1
