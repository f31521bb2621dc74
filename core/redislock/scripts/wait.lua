-- Puts a place in the queue for a name, and says whether to try now.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- ARGV[1] the member    ARGV[2] the claim's token and magic byte    ARGV[3] how long a member lives, in ms
-- ARGV[4] the beginning of the channels' names    ARGV[5] its offer, see line.lua, or \31 and its label, or ''
-- ARGV[6] its rank, '' if it has none
--
-- Answers one of these:
--   {1} for "try"
--   {0, ms}: look again after that time, even without a notification; negative if the name has no TTL
--   {2} if the name has a foreign value: nobody is told of its end
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include label.lua BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[4]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
local now, time = clock()
local value, mine = redis.call('GET', KEYS[1]), ARGV[2]
if value and string.sub(value, 1, #mine) == mine then -- this command is late: the claim was granted meanwhile, and has left the queue
  return {1}
end
stand(ARGV[1], now, tonumber(ARGV[3]), ARGV[6] ~= '' and ARGV[6])
if string.sub(ARGV[5], 1, 1) == '\31' then
  label(ARGV[1], ARGV[5])
elseif ARGV[5] ~= '' then -- commands may come in another order: the offer that was made last stands
  local last = string.match(redis.call('HGET', KEYS[3], '@' .. ARGV[1]) or '', '^%d+')
  if not last or tonumber(last) < tonumber(string.match(ARGV[5], '^%d+')) then
    redis.call('HSET', KEYS[3], '@' .. ARGV[1], ARGV[5])
  end
end
if value then
  if string.sub(value, #mine, #mine) ~= '\31' then
    return {2}
  end
  return {0, redis.call('PTTL', KEYS[1])}
end
local head, dead = first(now)
if not head or head == ARGV[1] then
  return {1}
end
serve(ARGV[4], now, time)
return {0, dead - now}
