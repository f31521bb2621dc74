-- Takes a name from one holder of any kind. Serves the first place in the queue, or tells it if there may be room.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders
-- KEYS[5] the fence counter    KEYS[6] the notes of the holders
-- ARGV[1] the handle of the holder that is meant    ARGV[2] the beginning of the channels' names
--
-- Answers 1, or 0 if nobody has the name, or {label, remaining ms} if only others have it.
-- include value.lua
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[5]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
-- include holders.lua LOCK=KEYS[1] HOLDERS=KEYS[4]
-- include remove.lua LOCK=KEYS[1] HOLDERS=KEYS[4] NOTES=KEYS[6]
-- include handle.lua
local at = 23 -- core's tokens have 22 bytes
local now, time = clock()
local value = redis.call('GET', KEYS[1])
if not value then
  return 0
end
local kind = string.sub(value, at, at) == '\31' and string.sub(value, 1, 1)
local room = true
if kind == '+' or kind == '*' then
  local meant
  local there = redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. now, '+inf')
  for _, member in ipairs(there) do
    if handle(string.match(member, '^.([^\31]*)')) == ARGV[1] then
      meant = member
    end
  end
  if not meant then
    return {'', redis.call('PTTL', KEYS[1])}
  end
  room = remove(meant, now, KEYS[6]) == 0 or kind == '*'
else
  if not kind or handle(string.sub(value, 1, at - 1)) ~= ARGV[1] then
    return {held(value, at)[1], redis.call('PTTL', KEYS[1])}
  end
  redis.call('DEL', KEYS[1])
end
pcall(function() -- an error here would hide that the name is free
  local head = room and first(now)
  if head and redis.call('EXISTS', KEYS[1]) == 1 then
    tell(ARGV[2], head)
  elseif head then
    serve(ARGV[2], now, time)
  end
end)
return 1
