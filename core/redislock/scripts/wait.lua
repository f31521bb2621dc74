-- Puts a place in the queue for a name, and says whether to try now. It is for nodes of a quorum, whose queues nobody
-- else uses.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats
-- ARGV[1] the member    ARGV[2] the claim's token and magic byte    ARGV[3] how long a member lives, in ms
-- ARGV[4] the beginning of the channels' names    ARGV[5] its note, as in note.lua    ARGV[6] its rank, '' if it has none
--
-- Answers one of these:
--   {1} for "try"
--   {0, ms}: look again after that time, even without a notification; negative if the name has no TTL
--   {2} if the name has a foreign value: nobody is told of its end
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
local now = clock()
local value, mine = redis.call('GET', KEYS[1]), ARGV[2]
if value and string.sub(value, 1, #mine) == mine then -- this command is late: the claim was granted meanwhile, and has left the queue
  return {1}
end
stand(ARGV[1], now, tonumber(ARGV[3]), ARGV[6] ~= '' and ARGV[6])
redis.call('HSET', KEYS[3], '@' .. ARGV[1], ARGV[5])
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
tell(ARGV[4], head)
return {0, dead - now}
