-- Takes a name for a claim at a node of a quorum, or says who has it. Nobody else uses the queues of nodes.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms
-- ARGV[3] the member    ARGV[4] how long it lives, in ms    ARGV[5] the beginning of the channels' names
-- ARGV[6] the rank, '' if it has none    ARGV[7] a floor for fences, only if there is one
--
-- Answers as acquire.lua does, and {'', 0} if others come first; 0 if that is not known yet.
--
-- The lock is written last. So an error reply means that nothing was granted. But the place in the
-- queue may have been left before the error. The next heartbeat repairs that.
-- include line.lua QUEUE=KEYS[3] BEATS=KEYS[4]
-- include mint.lua FENCE=KEYS[2]
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
    if redis.call('HEXISTS', KEYS[4], ARGV[3]) == 1 then
      stand(ARGV[3], now, tonumber(ARGV[4]), ARGV[6] ~= '' and ARGV[6])
    end
    return held(value, #mine, left)
  end
else
  local head = first(now)
  if head and head ~= ARGV[3] and not (ARGV[6] ~= '' and head ~= '' and tonumber(ARGV[6]) / 4096 < tonumber(redis.call('ZSCORE', KEYS[3], head))) then
    tell(ARGV[5], head)
    return head == '' and 0 or {'', 0}
  end
end
leave(ARGV[3])
local fence = mint(1, time, ARGV[7])
if not value then -- NX, as in acquire.lua
  return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and fence or {'', 0}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
