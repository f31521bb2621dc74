-- Leaves the queue, or only withdraws an offer there, and frees the name if the token owns it.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- ARGV[1] the token and magic byte    ARGV[2] the member    ARGV[3] the beginning of the channels' names
-- ARGV[4] the number of the last offer to withdraw; if there is one, the member stays
--
-- A number without the rest keeps offers that come late from standing again.
--
-- Answers 1, or 0 for "not the owner".
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[4]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
local function go(member)
  if not ARGV[4] then
    leave(member)
  elseif redis.call('HEXISTS', KEYS[3], member) == 1 then
    local last = string.match(redis.call('HGET', KEYS[3], '@' .. member) or '', '^%d+')
    if not last or tonumber(last) <= tonumber(ARGV[4]) then
      redis.call('HSET', KEYS[3], '@' .. member, ARGV[4])
    end
  end
end
local value = redis.call('GET', KEYS[1])
local mine = value and string.sub(value, 1, #ARGV[1]) == ARGV[1]
if mine then
  redis.call('DEL', KEYS[1])
else
  go(ARGV[2])
end
pcall(function() -- an error here would hide that the name is free; a place that stays is soon dead
  if mine then
    go(ARGV[2])
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
