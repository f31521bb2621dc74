-- Ends the ownership of one holder. It removes the holder's place from the queue, leaves a dedup
-- marker if asked to, and tells the first place in the queue if there may be room.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders    KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the member among the holders    ARGV[2] the member in the queue, '' if there is none
-- ARGV[3] the beginning of the channels' names    ARGV[4] the marker's label    ARGV[5] the marker's window in ms
--
-- Answers 1, or 0 for "not the owner", or the text of an error if everything is done except the
-- marker.
-- include line.lua
-- include holders.lua
local lock, holders, me = KEYS[1], KEYS[4], ARGV[1]
local now = clock()
local value = redis.call('GET', lock)
local joins = together(value, me)
local mine = joins and ends(holders, me) > now
local unmarked
if mine then
  if remove(lock, holders, me, now) == 0 then
    value = nil
  end
  unmarked = KEYS[5] and redis.pcall('SET', KEYS[5], ARGV[4], 'PX', ARGV[5]).err
end
pcall(function() -- an error here would hide that it was released
  if ARGV[2] ~= '' then
    leave(KEYS[2], KEYS[3], ARGV[2])
  end
  if not value or joins and (ARGV[2] ~= '' or string.sub(me, 1, 1) == '*') then
    local head = first(KEYS[2], KEYS[3], now)
    if head then
      tell(ARGV[3], head)
    end
  end
end)
return unmarked or mine and 1 or 0
