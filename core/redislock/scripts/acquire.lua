-- Takes a name for a claim without a place in the queue, or says who has it.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms    ARGV[3] fences to reserve, only if more than one
--
-- Answers one of these:
--   the fence, as a string
--   {label} of a dedup marker
--   {label, remaining ms} of the owner; with a 1 added if a release has left the name taken for just that long
--   0 if a free name has a queue: then ask.lua has to decide
--
-- The lock is written last. So an error reply means that nothing was granted. A name that was free is
-- written with NX: not every server runs scripts one after the other.
if KEYS[4] then
  local done = redis.call('GET', KEYS[4])
  if done then
    return {done}
  end
end
local free = true
if redis.call('EXISTS', KEYS[1], KEYS[3]) > 0 then
  local value = redis.call('GET', KEYS[1])
  if not value then
    return 0
  end
  if value ~= ARGV[1] then
-- include value.lua
    local mine = owner(ARGV[1])
    if string.sub(value, 1, #mine) ~= mine then
      return held(value, #mine, redis.call('PTTL', KEYS[1]))
    end
  end
  free = false
end
-- A token that already owns the name gets a new fence and its full TTL again.
local time = redis.call('TIME')
local fence
if ARGV[3] then
-- include mint.lua FENCE=KEYS[2]
  fence = mint(tonumber(ARGV[3]), time)
else -- the same for a single fence, spelled out: most calls come here
  fence = time[1] .. string.sub('00000' .. time[2], -6)
  local last = redis.call('GET', KEYS[2])
  if last and (#last ~= #fence or last >= fence) then
    fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, tonumber(fence)))
  end
  redis.call('SET', KEYS[2], fence)
end
if free then
  return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and fence or 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
