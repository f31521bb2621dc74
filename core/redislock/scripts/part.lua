-- Ends the ownership of one holder. It removes the holder's place from the queue, leaves a dedup
-- marker if asked to, and serves the first place in the queue, or tells it if there may be room.
--
-- KEYS[1] the lock    KEYS[2] the holders    KEYS[3] their notes    KEYS[4] the queue    KEYS[5] its beats
-- KEYS[6] the fence counter    KEYS[7] the dedup marker, only if asked for
-- ARGV[1] the member among the holders    ARGV[2] the member in the queue, '' if there is none
-- ARGV[3] the beginning of the channels' names    ARGV[4] the marker's label    ARGV[5] the marker's window in ms
--
-- While the slot moves, a release without a place and a marker comes with the lock and the holders alone.
--
-- Answers 1, or 0 for "not the owner", or the text of an error if everything is done except the
-- marker.
-- include line.lua QUEUE=KEYS[4] BEATS=KEYS[5]
-- include mint.lua FENCE=KEYS[6]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[4] BEATS=KEYS[5]
-- include holders.lua LOCK=KEYS[1] HOLDERS=KEYS[2]
-- include remove.lua LOCK=KEYS[1] HOLDERS=KEYS[2] NOTES=KEYS[3]
local me = ARGV[1]
local now, time = clock()
local value = redis.call('GET', KEYS[1])
local joins = together(value, me)
local mine = joins and ends(me) > now
local unmarked
if mine then
  if remove(me, now, KEYS[3]) == 0 then
    value = nil
  end
  unmarked = KEYS[7] and redis.pcall('SET', KEYS[7], ARGV[4], 'PX', ARGV[5]).err
end
pcall(function() -- an error here would hide that it was released
  if ARGV[2] ~= '' then
    leave(ARGV[2])
  end
  if not KEYS[4] then
    return
  end
  if not value then
    serve(ARGV[3], now, time)
  elseif ARGV[2] ~= '' and string.find(value, '^[+*].*\31$') or joins and string.sub(me, 1, 1) == '*' then
    -- there may be room beside others, of whatever kind who leaves is
    local head = first(now)
    if head then
      tell(ARGV[3], head)
    end
  end
end)
return unmarked or mine and 1 or 0
