-- Stands in line for a name, and says whether it is worth trying.
--
-- KEYS[1] the lock    KEYS[2] the line    KEYS[3] its beats
-- ARGV[1] the member    ARGV[2] the claim's token and magic byte    ARGV[3] how long a member lives, in ms
-- ARGV[4] what the channels' names begin with
--
-- Answers {1} for "try", {0, ms} with the time after which to look again, whatever is heard
-- until then, negative if the name has no TTL, and {2} if a foreign value stands at the name:
-- its end is told to nobody.
-- include line.lua
local now = clock()
local value, mine = redis.call('GET', KEYS[1]), ARGV[2]
if value and string.sub(value, 1, #mine) == mine then -- late: it was granted meanwhile, and has left the line
  return {1}
end
stand(KEYS[2], KEYS[3], ARGV[1], now, tonumber(ARGV[3]))
if value then
  if string.sub(value, #mine, #mine) ~= '\31' then
    return {2}
  end
  return {0, redis.call('PTTL', KEYS[1])}
end
local head, dead = first(KEYS[2], KEYS[3], now)
if not head or head == ARGV[1] then
  return {1}
end
tell(ARGV[4], head)
return {0, dead - now}
