-- Ends the ownership of one holder, leaves its place in line, and a dedup marker if asked to,
-- and tells the first in line if there may be room.
--
-- KEYS[1] the lock    KEYS[2] the line    KEYS[3] its beats    KEYS[4] the holders    KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the member among the holders    ARGV[2] the member in line, '' to leave none
-- ARGV[3] what the channels' names begin with    ARGV[4] the marker's label    ARGV[5] the marker's window in ms
--
-- Answers 1, or 0 for "not the owner", or the text of an error if all is done but the marker is not
-- left.
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
