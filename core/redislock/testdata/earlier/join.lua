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
--   0 if it is not known yet whether others come first
--
-- The write that makes the claim a holder comes last. So an error reply means that nothing was granted.
-- If nobody has the name, that is the lock: without a holder, it would keep the name taken for nobody.
-- If others have the name, it is the member: the member alone makes a holder.
-- The queue for a name: a sorted set of members by when they came, and a hash, the beats. The beats
-- say when each member is dead unless it is heard of again, in ms of the server's clock. A member is
-- the id of a client's channel, 22 characters, and a place. The field '@' and the member is its offer:
-- a number, a nonce, how many fences it wants, its life, and the value that would own the name. Includes say which keys QUEUE and BEATS are.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), time
end
-- The first member that lives, and when it will be dead. Dead members on the way are dropped, but no
-- more in one call of a script than take the server a third of a millisecond. If there are more, the answer
-- is '' and now: whose turn it is is not known yet, and nobody is served until a later call knows.
local spare = 100
local function first(now)
  while true do
    local member = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    if not member then
      return nil
    end
    local dead = tonumber(redis.call('HGET', KEYS[4], member) or 0)
    if dead > now + 10000 then -- no member lives for so long: the clock was set back since its last heartbeat
      dead = 0
    end
    if dead > now then
      return member, dead
    end
    if spare == 0 then
      return '', now
    end
    spare = spare - 1
    redis.call('ZREM', KEYS[3], member)
    redis.call('HDEL', KEYS[4], member, '@' .. member)
  end
end
local function leave(member)
  redis.call('ZREM', KEYS[3], member)
  redis.call('HDEL', KEYS[4], member, '@' .. member)
end
-- Puts a member at the end of the queue, or keeps it alive at its place. The queue expires with its
-- last member. Only the sorted set says who is in the queue: it may have been evicted or deleted
-- while the hash was not. Nothing shortens a life, unless the clock was set back: an offer relies on
-- it, and commands with other lives may come late.
local function stand(member, now, life)
  if not redis.call('ZSCORE', KEYS[3], member) then
    local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[3], math.max(now, (tonumber(last) or 0) + 1), member)
  end
  local dead = tonumber(redis.call('HGET', KEYS[4], member) or 0)
  if dead < now + life or dead > now + 10000 then
    redis.call('HSET', KEYS[4], member, now + life)
  end
  redis.call('PEXPIRE', KEYS[3], 10000)
  redis.call('PEXPIRE', KEYS[4], 10000)
end
-- Tells a member that its turn may have come, or what it was granted. It never fails: without permission
-- for the channel, waiters find out by themselves. While it is not known whose turn it is, the last
-- member is told: it probably lives, and drops more of the dead when it asks.
--
-- A channel whose name ends in ':shard:' and the id belongs to a slot. Only the nodes of the slot's
-- shard know it, unless they are older than Redis 7.
local function tell(channels, member, said)
  if member == '' then
    member = redis.call('ZRANGE', KEYS[3], -1, -1)[1]
  end
  local channel, place = channels .. string.sub(member, 1, 22), string.sub(member, 23) .. (said or '')
  if string.sub(channels, -7) == ':shard:' then
    if type(redis.pcall('SPUBLISH', channel, place)) == 'number' then
      return
    end
  end
  redis.pcall('PUBLISH', channel, place)
end
-- Reserves n fences. Answers the first, as digits, and how many there are if that is more than one. If
-- the last would be more than a second ahead of the clock, it reserves only one. Includes say which key
-- FENCE, the counter, is.
--
-- Fences are strings of digits. Strings of the same length are compared as such: Lua prints a number
-- of this size with only 14 digits.
local function mint(n, time)
  local fence = time[1] .. string.sub('00000' .. time[2], -6)
  local now = tonumber(fence)
  local last = redis.call('GET', KEYS[2])
  if last and (#last ~= #fence or last >= fence) then
    fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now))
  end
  if n > 1 and tonumber(fence) + n - 1 > now + 1000000 then
    n = 1
  end
  if n == 1 then
    redis.call('SET', KEYS[2], fence)
    return fence
  end
  redis.call('SET', KEYS[2], string.format('%.0f', tonumber(fence) + n - 1))
  return fence .. ' ' .. n
end
-- The holders of a name that several own together. They are members of a sorted set, at a key of its
-- own. The score is when a holder ends, in ms of the server's clock. A member is its kind ('+' for a
-- reader, '*' for one of a limited number), its token, the magic byte, and the limit it asked for.
-- While holders live, the lock has a value that no token owns: the kind, a number, the magic byte.
-- The number is the fence of all readers, or the smallest limit. The lock expires with the last holder.
-- Includes say which keys LOCK and HOLDERS, the sorted set, are.
local function together(value, member)
  return value and string.sub(value, 1, 1) == string.sub(member, 1, 1) and string.sub(value, -1) == '\31'
end
local function number(value)
  return tonumber(string.sub(value, 2, -2))
end
local function reserved(member, digits)
  local width = #string.match(member, '^.([^\31]*)')
  return string.sub(member, 1, 1) .. string.rep('0', width - 1 - #digits) .. digits .. '\31'
end
local function ends(member)
  return tonumber(redis.call('ZSCORE', KEYS[5], member) or 0)
end
-- How many holders there may be if one joins who asked for that limit, and how many there are.
local function limit(value, asked, now)
  local n = asked
  if not value then
    return n, 0
  end
  if number(value) < asked then -- the holder that asked for fewer may have gone
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. now, '+inf')) do
      n = math.min(n, tonumber(string.match(member, '%d+$')))
    end
  end
  return n, redis.call('ZCOUNT', KEYS[5], '(' .. now, '+inf')
end
-- When the first holder ends, and when the last one does.
local function first_end(now)
  return tonumber(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now)
end
local function last_end()
  return tonumber(redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2] or 0)
end
-- Ends the ownership of one holder, and says when the last of the others ends, 0 if there is none. The
-- first write ends it. What follows only shortens the life of what is left, and may fail.
local function remove(me, now)
  local two = redis.call('ZRANGE', KEYS[5], -2, -1, 'WITHSCORES') -- if I am the last, the one before counts
  local last = tonumber(two[3] == me and two[2] or two[4] or 0)
  if last <= now then
    redis.call('DEL', KEYS[1], KEYS[5])
    return 0
  end
  redis.call('ZREM', KEYS[5], me)
  redis.pcall('PEXPIRE', KEYS[1], last - now)
  redis.pcall('PEXPIRE', KEYS[5], last - now)
  return last
end
if KEYS[6] then
  local done = redis.call('GET', KEYS[6])
  if done then
    return {done}
  end
end
local me, ttl, asked = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, time = clock()
local value = redis.call('GET', KEYS[1])
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
  if redis.call('HEXISTS', KEYS[4], ARGV[4]) == 1 then -- as in claim.lua
    stand(ARGV[4], now, tonumber(ARGV[5]))
  end
  if joins then
    return {'', first_end(now) - now, 0, fewer}
  end
-- What a lock's value says. An owner's value is its token, \31, its label, and, once a renewal has told
-- the fence, \31 and the fence. Some values have something else, as wide as a token, in its place, so
-- that nobody owns them: '=' is kept after a release, '!' is kept for a hand-off, '+' and '*' are shared
-- (holders.lua). Our values have \31 after the token. A value with another byte there is foreign.
local function owner(value) -- token and \31: the beginning of all values of one tenure
  return string.sub(value, 1, string.find(value, '\31', 1, true))
end
-- The answer to an acquire that is refused: the label, the remaining ms, and a 1 if they are exact.
local function held(value, at, left)
  if string.sub(value, at, at) ~= '\31' then
    return {'', left}
  end
  local last = string.find(value, '\31', at + 1, true) or 0
  return {string.sub(value, at + 1, last - 1), left, string.sub(value, 1, 1) == '=' and 1 or nil}
end
  return held(value, #owner(me) - 1, left) -- a member has its kind before the token
end
if not mine then
  local head = first(now)
  if head and head ~= ARGV[4] then
    if not value then
      tell(ARGV[6], head)
    end
    return head == '' and 0 or {'', 0, 0, fewer}
  end
end
leave(ARGV[4])
local fence = '0'
if joins then
  fence = asked == 0 and string.format('%.0f', number(value)) or fence
  local gone = redis.call('ZCOUNT', KEYS[5], '-inf', now)
  if gone > 0 then -- a few at a time, as in line.lua
    redis.call('ZREMRANGEBYRANK', KEYS[5], 0, math.min(gone, 1000) - 1)
  end
  local last = math.max(now + ttl, last_end())
  redis.call('SET', KEYS[1], reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', last - now)
  local there = redis.call('PEXPIRE', KEYS[5], last - now)
  redis.call('ZADD', KEYS[5], now + ttl, me)
  if there == 0 then -- the set went with the last expired holder; now it is new, and has no TTL
    redis.pcall('PEXPIRE', KEYS[5], last - now)
  end
else
  fence = asked == 0 and mint(1, time) or fence
  redis.call('DEL', KEYS[5]) -- expired ones
  redis.call('ZADD', KEYS[5], now + ttl, me)
  redis.call('PEXPIRE', KEYS[5], ttl)
  redis.call('SET', KEYS[1], reserved(me, asked == 0 and fence or string.format('%.0f', n)), 'PX', ttl)
end
pcall(function() -- an error here would hide the grant
  local next = first(now)
  if next then -- there may be room for more
    tell(ARGV[6], next)
  end
end)
return fence .. ' ' .. fewer
