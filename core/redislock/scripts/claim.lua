-- Takes a name for a claim whose turn it may be, or says who has it.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats    KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms    ARGV[3] fences to reserve
-- ARGV[4] the member    ARGV[5] how long it lives, in ms    ARGV[6] the beginning of the channels' names
-- ARGV[7] fences to reserve at most while others are in the queue
--
-- Answers as acquire.lua does, and {'', 0} if others come first.
--
-- The lock is written last. So an error reply means that nothing was granted. But the place in the
-- queue may have been left before the error. The next heartbeat repairs that.
-- include line.lua
-- include mint.lua
if KEYS[5] then
  local done = redis.call('GET', KEYS[5])
  if done then
    return {done}
  end
end
local now, time = clock()
local value = redis.call('GET', KEYS[1])
if value then
-- include value.lua
  local mine = owner(ARGV[1])
  if string.sub(value, 1, #mine) ~= mine then
    -- Only a place that Wait has queued is kept: nobody would remove another one. The beats know
    -- those places. They survive an eviction of the queue. A place that has left is in neither key,
    -- so a claim that arrives late does not bring it back. If the beats have gone, the next look
    -- writes them again.
    local left = redis.call('PTTL', KEYS[1])
    if redis.call('HEXISTS', KEYS[4], ARGV[4]) == 1 then
      stand(KEYS[3], KEYS[4], ARGV[4], now, tonumber(ARGV[5]))
    end
    return held(value, #mine, left)
  end
else
  local head = first(KEYS[3], KEYS[4], now)
  if head and head ~= ARGV[4] then
    tell(ARGV[6], head)
    return {'', 0}
  end
end
leave(KEYS[3], KEYS[4], ARGV[4])
local n = tonumber(ARGV[3])
if n > 1 and first(KEYS[3], KEYS[4], now) then
  n = math.min(n, tonumber(ARGV[7]))
end
local fence = mint(KEYS[2], n, time)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
