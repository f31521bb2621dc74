-- Takes a name for a claim whose turn it may be, or says who has it.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats    KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms    ARGV[3] fences to reserve
-- ARGV[4] the member    ARGV[5] how long it lives, in ms    ARGV[6] the beginning of the channels' names
-- ARGV[7] fences to reserve at most while others are in the queue    ARGV[8] the rank, '' if it has none
-- ARGV[9] a floor for fences, only if there is one
--
-- Answers as acquire.lua does, and {'', 0} if others come first; 0 if that is not known yet.
--
-- The lock is written last. So an error reply means that nothing was granted. But the place in the
-- queue may have been left before the error. The next heartbeat repairs that.
-- include line.lua QUEUE=KEYS[3] BEATS=KEYS[4]
-- include mint.lua FENCE=KEYS[2]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[3] BEATS=KEYS[4]
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
      stand(ARGV[4], now, tonumber(ARGV[5]), ARGV[8] ~= '' and ARGV[8])
    end
    return held(value, #mine, left)
  end
else
  local head = first(now)
  if head and head ~= ARGV[4] and not (ARGV[8] ~= '' and head ~= '' and tonumber(ARGV[8]) / 4096 < tonumber(redis.call('ZSCORE', KEYS[3], head))) then
    serve(ARGV[6], now, time)
    return head == '' and 0 or {'', 0}
  end
end
leave(ARGV[4])
local n = tonumber(ARGV[3])
if n > 1 and first(now) then
  n = math.min(n, tonumber(ARGV[7]))
end
local fence = mint(n, time, ARGV[9])
if not value then -- NX, as in acquire.lua
  return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and fence or {'', 0}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
