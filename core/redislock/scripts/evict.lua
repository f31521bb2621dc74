-- Takes a name from one holder of any kind. Tells the first place in the queue if there may be room.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders
-- ARGV[1] the fence of the holder that is meant, or ''    ARGV[2] its handle, if there is no fence
-- ARGV[3] the beginning of the channels' names
--
-- Answers 1, or 0 if nobody has the name, or {label, remaining ms} if only others have it, or 2 if
-- several holders have the fence.
-- include value.lua
-- include line.lua
-- include holders.lua
-- include handle.lua
local lock, holders = KEYS[1], KEYS[4]
local at = 23 -- core's tokens have 22 bytes
local now = clock()
local value = redis.call('GET', lock)
if not value then
  return 0
end
local kind = string.sub(value, at, at) == '\31' and string.sub(value, 1, 1)
local room = true
if kind == '+' or kind == '*' then
  local meant
  local there = redis.call('ZRANGEBYSCORE', holders, '(' .. now, '+inf')
  if ARGV[1] == '' then
    for _, member in ipairs(there) do
      if handle(string.match(member, '^.([^\31]*)')) == ARGV[2] then
        meant = member
      end
    end
  elseif fence(value, at) == ARGV[1] then
    if #there > 1 then
      return 2
    end
    meant = there[1]
  end
  if not meant then
    return {'', redis.call('PTTL', lock)}
  end
  room = remove(lock, holders, meant, now) == 0 or kind == '*'
else
  local meant = fence(value, at) == ARGV[1]
  if ARGV[1] == '' then
    meant = handle(string.sub(value, 1, at - 1)) == ARGV[2]
  end
  if not kind or not meant then
    return {held(value, at)[1], redis.call('PTTL', lock)}
  end
  redis.call('DEL', lock)
end
pcall(function() -- an error here would hide that the name is free
  local head = room and first(KEYS[2], KEYS[3], now)
  if head then
    tell(ARGV[3], head)
  end
end)
return 1
