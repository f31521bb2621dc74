-- Leaves the queue, and frees the name if the token owns it.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- ARGV[1] the token and magic byte    ARGV[2] the member    ARGV[3] the beginning of the channels' names
--
-- Answers 1, or 0 for "not the owner".
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[4]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
local value = redis.call('GET', KEYS[1])
local mine = value and string.sub(value, 1, #ARGV[1]) == ARGV[1]
if mine then
  redis.call('DEL', KEYS[1])
else
  leave(ARGV[2])
end
pcall(function() -- an error here would hide that the name is free; a place that stays is soon dead
  if mine then
    leave(ARGV[2])
  end
  if mine or not value then
    serve(ARGV[3], clock())
  elseif string.find(value, '^[+*].*\31$') then -- there may be room beside others
    local head = first(clock())
    if head then
      tell(ARGV[3], head)
    end
  end
end)
return mine and 1 or 0
