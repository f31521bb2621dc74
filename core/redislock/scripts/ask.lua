-- Takes a name for a claim that owns it alone, or says who has it. A claim that waits has a note: then it stands
-- in the queue for as long as it is refused. Looking, queueing and granting are one step.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats    KEYS[5] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms, or 0 to ask without being granted    ARGV[3] fences to reserve
-- ARGV[4] the member    ARGV[5] how long it lives, in ms    ARGV[6] the beginning of the channels' names
-- ARGV[7] the note, see note.lua    ARGV[8] the beginning of the value of a name that is left for its hand-off, or ''
-- ARGV[9] its rank in the queue, 0 if it has none    ARGV[10] a floor for fences, or 0; both only at a node of package redlock
--
-- Answers one of these:
--   the fence, as a string, and how many there are if more than one
--   1 if it would be granted, and asks without being granted
--   {label} of a dedup marker
--   {label, remaining ms} of the owner; with a 1 added if a release has left the name taken for just that long
--   {'', remaining ms, 0, 0, 0} of a foreign value, whose end nobody tells
--   {'', 0, 0, 0, ms} if others come first: look again after that time, even without a notification
--   0 if that is not known yet
--
-- The lock is written last. So an error reply means that nothing was granted. But the place in the queue may have
-- been left before the error. The next look repairs that.
-- include line.lua QUEUE=KEYS[3] BEATS=KEYS[4]
-- include note.lua BEATS=KEYS[4]
-- include mint.lua FENCE=KEYS[2]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[3] BEATS=KEYS[4]
-- include value.lua
local me, mine = ARGV[4], owner(ARGV[1])
local rank = ARGV[9] and ARGV[9] ~= '0' and tonumber(ARGV[9]) / 4096
local now, time = clock()
local value = redis.call('GET', KEYS[1])
local done = KEYS[5] and redis.call('GET', KEYS[5])
if done then
  leave(me)
  if not value then
    serve(ARGV[6], now, time)
  end
  return {done}
end
local owns = value and string.sub(value, 1, #mine) == mine -- who owns the name is never queued: this look may be late
local left = value and ARGV[8] ~= '' and string.sub(value, 1, #ARGV[8]) == ARGV[8]
if value and not owns and not left then
  local ms = redis.call('PTTL', KEYS[1])
  note(me, ARGV[7], now, tonumber(ARGV[5]), rank)
  if string.sub(value, #mine, #mine) ~= '\31' then
    return {'', ms, 0, 0, 0}
  end
  return held(value, #mine, ms)
end
if not value then
  local head, dead = first(now)
  if head and head ~= me and not (rank and head ~= '' and rank < tonumber(redis.call('ZSCORE', KEYS[3], head))) then
    serve(ARGV[6], now, time)
    note(me, ARGV[7], now, tonumber(ARGV[5]), rank)
    return head == '' and 0 or {'', 0, 0, 0, dead - now}
  end
end
if ARGV[2] == '0' then
  if not owns then
    note(me, ARGV[7], now, tonumber(ARGV[5]), rank)
  end
  return 1
end
leave(me)
local n = tonumber(ARGV[3])
if n > 1 and first(now) then
  n = math.min(n, 128) -- driver.FencesBesideOthers
end
local fence = mint(n, time, ARGV[10])
if not value then -- not every server runs scripts one after the other
  return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') and fence or {'', 0, 0, 0, 1}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
