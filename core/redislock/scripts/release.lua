-- Frees a name if the token still owns it, leaves a dedup marker if asked to, and tells the first
-- place in the queue.
--
-- KEYS[1] the lock    KEYS[2] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the key of the queue
-- ARGV[3] the beginning of the channels' names
-- ARGV[4] the marker's label    ARGV[5] the marker's window in ms
--
-- The queue is not among KEYS, so that a release goes on while the slot moves.
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
local unmarked = KEYS[2] and redis.pcall('SET', KEYS[2], ARGV[4], 'PX', ARGV[5]).err
if redis.pcall('EXISTS', ARGV[2]) == 1 then
  pcall(function() -- an error here would hide that the name is free
-- include line.lua
    local head = first(ARGV[2], ARGV[2] .. ':beats', clock())
    if head then
      tell(ARGV[3], head)
    end
  end)
end
return unmarked or 1
