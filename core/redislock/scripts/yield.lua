-- Frees a name for the others in the queue. If there are none, the name goes to the next claim of
-- the same client.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats
-- ARGV[1] the old token and magic byte
-- ARGV[2] the next value: token, magic byte, label    ARGV[3] its TTL in ms    ARGV[4] fences to reserve
-- ARGV[5] its member    ARGV[6] how long that lives, in ms    ARGV[7] the beginning of the channels' names
--
-- Answers the fence as a string, or 1 if the claim is in the queue now, or 0 for "not the owner".
--
-- Without others, the lock is written last, in one step. So an error reply means that the owner has not
-- changed. With others, only a place and the first one's turn come after the DEL. Heartbeats repair both.
-- include line.lua QUEUE=KEYS[3] BEATS=KEYS[4]
-- include mint.lua FENCE=KEYS[2]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[3] BEATS=KEYS[4]
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
local now, time = clock()
if redis.call('EXISTS', KEYS[3]) == 1 then
  leave(ARGV[5])
  local head = first(now)
  if head then
    redis.call('DEL', KEYS[1])
    pcall(stand, ARGV[5], now, tonumber(ARGV[6]))
    pcall(serve, ARGV[7], now, time)
    return 1
  end
end
local fence = mint(tonumber(ARGV[4]), time)
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return fence
