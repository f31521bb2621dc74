-- Takes a name for a claim that can own it together with others of its kind, or says who has it.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the queue    KEYS[4] its beats    KEYS[5] the holders
-- KEYS[6] the dedup marker, only if asked for
-- ARGV[1] the member among the holders    ARGV[2] the TTL in ms    ARGV[3] the limit, 0 for a reader
-- ARGV[4] the member in the queue    ARGV[5] how long it lives, in ms    ARGV[6] the beginning of the channels' names
--
-- Answers one of these:
--   'fence limit'; the limit is 0 if it is the one asked for
--   {label} of a dedup marker
--   {label, remaining ms, 1 if that is exact, limit}; without the limit if the name has a single owner
--
-- The write that makes the claim a holder comes last. So an error reply means that nothing was granted.
-- If nobody has the name, that is the lock: without a holder, it would keep the name taken for nobody.
-- If others have the name, it is the member: the member alone makes a holder.
-- include line.lua
-- include mint.lua
-- include holders.lua
if KEYS[6] then
  local done = redis.call('GET', KEYS[6])
  if done then
    return {done}
  end
end
local lock, holders, me, ttl, asked = KEYS[1], KEYS[5], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, time = clock()
local value = redis.call('GET', lock)
local joins = together(value, me)
local mine = joins and ends(holders, me) > now
local n, there = 0, 0
if asked > 0 and (joins or not value) then
  n, there = limit(value, holders, asked, now)
end
local fewer = n < asked and n or 0
local full = value and not joins or n > 0 and there >= n
if full and not mine then
  local left = redis.call('PTTL', lock)
  if redis.call('HEXISTS', KEYS[4], ARGV[4]) == 1 then -- as in claim.lua
    stand(KEYS[3], KEYS[4], ARGV[4], now, tonumber(ARGV[5]))
  end
  if joins then
    return {'', first_end(holders, now) - now, 0, fewer}
  end
-- include value.lua
  return held(value, #owner(me) - 1, left) -- a member has its kind before the token
end
if not mine then
  local head = first(KEYS[3], KEYS[4], now)
  if head and head ~= ARGV[4] then
    if not value then
      tell(ARGV[6], head)
    end
    return {'', 0, 0, fewer}
  end
end
leave(KEYS[3], KEYS[4], ARGV[4])
local fence = '0'
if joins then
  fence = asked == 0 and string.format('%.0f', number(value)) or fence
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local last = math.max(now + ttl, last_end(holders))
  redis.call('SET', lock, reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', last - now)
  local there = redis.call('PEXPIRE', holders, last - now)
  redis.call('ZADD', holders, now + ttl, me)
  if there == 0 then -- the set went with the last expired holder; now it is new, and has no TTL
    redis.pcall('PEXPIRE', holders, last - now)
  end
else
  fence = asked == 0 and mint(KEYS[2], 1, time) or fence
  redis.call('DEL', holders) -- expired ones
  redis.call('ZADD', holders, now + ttl, me)
  redis.call('PEXPIRE', holders, ttl)
  redis.call('SET', lock, reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', ttl)
end
pcall(function() -- an error here would hide the grant
  local next = first(KEYS[3], KEYS[4], now)
  if next then -- there may be room for more
    tell(ARGV[6], next)
  end
end)
return fence .. ' ' .. fewer
