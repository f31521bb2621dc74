-- Leaves the queue, and frees the name if the token owns it.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats
-- ARGV[1] the token and magic byte    ARGV[2] the member    ARGV[3] the beginning of the channels' names
--
-- Answers 1, or 0 for "not the owner".
-- include line.lua
local value = redis.call('GET', KEYS[1])
local mine = value and string.sub(value, 1, #ARGV[1]) == ARGV[1]
if mine then
  redis.call('DEL', KEYS[1])
else
  leave(KEYS[2], KEYS[3], ARGV[2])
end
pcall(function() -- an error here would hide that the name is free; a place that stays is soon dead
  if mine then
    leave(KEYS[2], KEYS[3], ARGV[2])
  end
  if mine or not value or string.find(value, '^[+*].*\31$') then -- free, or there may be room beside others
    local head = first(KEYS[2], KEYS[3], clock())
    if head then
      tell(ARGV[3], head)
    end
  end
end)
return mine and 1 or 0
