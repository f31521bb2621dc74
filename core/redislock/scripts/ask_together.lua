-- ask.lua for a claim that can own a name together with others of its kind.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats    KEYS[5] the holders
-- KEYS[6] their notes    KEYS[7] the dedup marker, only if asked for
-- ARGV[1] the member among the holders    ARGV[2] the TTL in ms    ARGV[3] the limit, 0 for a reader
-- ARGV[4] the member in the queue    ARGV[5] how long it lives, in ms    ARGV[6] the beginning of the channels' names
-- ARGV[7] the label    ARGV[8] the note, see note.lua
--
-- Answers one of these:
--   'fence limit'; the limit is 0 if it is the one asked for
--   {label} of a dedup marker
--   {label, remaining ms, 1 if that is exact, limit}; without the limit if the name has a single owner
--   {'', remaining ms, 0, 0, 0} of a foreign value, whose end nobody tells
--   {'', 0, 0, limit, ms} if others come first: look again after that time, even without a notification
--   0 if that is not known yet
--
-- The write that makes the claim a holder comes last. So an error reply means that nothing was granted.
-- If nobody has the name, that is the lock: without a holder, it would keep the name taken for nobody.
-- If others have the name, it is the member: the member alone makes a holder.
-- include line.lua QUEUE=KEYS[3] BEATS=KEYS[4]
-- include note.lua BEATS=KEYS[4]
-- include mint.lua FENCE=KEYS[2]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[3] BEATS=KEYS[4]
-- include holders.lua LOCK=KEYS[1] HOLDERS=KEYS[5]
-- include value.lua
local me, ttl, asked = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, time = clock()
local value = redis.call('GET', KEYS[1])
local done = KEYS[7] and redis.call('GET', KEYS[7])
if done then
  leave(ARGV[4])
  if not value then
    serve(ARGV[6], now, time)
  end
  return {done}
end
local joins = together(value, me)
local mine = joins and ends(me) > now
local n, there = 0, 0
if asked > 0 and (joins or not value) then
  n, there = limit(value, asked, now)
end
local fewer = n < asked and n or 0
local full = value and not joins or n > 0 and there >= n
if full and not mine then
  local left = redis.call('PTTL', KEYS[1])
  note(ARGV[4], ARGV[8], now, tonumber(ARGV[5]))
  if joins then
    return {'', first_end(now) - now, 0, fewer}
  end
  local width = #owner(me) - 1 -- a member has its kind before the token
  if string.sub(value, width, width) ~= '\31' then
    return {'', left, 0, 0, 0}
  end
  return held(value, width, left)
end
-- Beats outlive a queue that is evicted. If there are neither, nobody comes first, and there is no place to leave.
local queued = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0
if queued and not mine then
  local head, dead = first(now)
  if head and head ~= ARGV[4] then
    if not value then
      serve(ARGV[6], now, time)
    end
    note(ARGV[4], ARGV[8], now, tonumber(ARGV[5]))
    return head == '' and 0 or {'', 0, 0, fewer, dead - now}
  end
end
if queued then
  leave(ARGV[4])
end
local fence = '0'
if joins then
  fence = asked == 0 and string.format('%.0f', number(value)) or fence
  local gone = redis.call('ZCOUNT', KEYS[5], '-inf', now)
  if gone > 0 then -- a few at a time, as in line.lua
    local few = math.min(gone, 500) - 1
    redis.pcall('HDEL', KEYS[6], unpack(redis.call('ZRANGE', KEYS[5], 0, few)))
    redis.call('ZREMRANGEBYRANK', KEYS[5], 0, few)
  end
  local last = math.max(now + ttl, last_end())
  redis.call('SET', KEYS[1], reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', last - now)
  local there = redis.call('PEXPIRE', KEYS[5], last - now)
  if not mine then
    redis.pcall('HSET', KEYS[6], me, now .. ' ' .. ARGV[7])
  end
  redis.pcall('PEXPIRE', KEYS[6], last - now)
  redis.call('ZADD', KEYS[5], now + ttl, me)
  if there == 0 then -- the set went with the last expired holder; now it is new, and has no TTL
    redis.pcall('PEXPIRE', KEYS[5], last - now)
  end
else
  fence = asked == 0 and mint(1, time) or fence
  redis.call('DEL', KEYS[5], KEYS[6]) -- expired ones
  redis.call('ZADD', KEYS[5], now + ttl, me)
  redis.call('PEXPIRE', KEYS[5], ttl)
  redis.pcall('HSET', KEYS[6], me, now .. ' ' .. ARGV[7])
  redis.pcall('PEXPIRE', KEYS[6], ttl)
  redis.call('SET', KEYS[1], reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', ttl)
end
pcall(function() -- an error here would hide the grant
  local next = queued and first(now)
  if next then -- there may be room for more
    tell(ARGV[6], next)
  end
end)
return fence .. ' ' .. fewer
