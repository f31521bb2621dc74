-- wait.lua for a claim that can own a name together with others of its kind.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders
-- ARGV[1] the member in the queue    ARGV[2] the member among the holders    ARGV[3] how long a member in the queue lives, in ms
-- ARGV[4] the beginning of the channels' names    ARGV[5] the limit, 0 for a reader
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
    local member = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not member then
      return nil
    end
    local dead = tonumber(redis.call('HGET', KEYS[3], member) or 0)
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
    redis.call('ZREM', KEYS[2], member)
    redis.call('HDEL', KEYS[3], member, '@' .. member)
  end
end
local function leave(member)
  redis.call('ZREM', KEYS[2], member)
  redis.call('HDEL', KEYS[3], member, '@' .. member)
end
-- Puts a member at the end of the queue, or keeps it alive at its place. The queue expires with its
-- last member. Only the sorted set says who is in the queue: it may have been evicted or deleted
-- while the hash was not. Nothing shortens a life, unless the clock was set back: an offer relies on
-- it, and commands with other lives may come late.
local function stand(member, now, life)
  if not redis.call('ZSCORE', KEYS[2], member) then
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[2], math.max(now, (tonumber(last) or 0) + 1), member)
  end
  local dead = tonumber(redis.call('HGET', KEYS[3], member) or 0)
  if dead < now + life or dead > now + 10000 then
    redis.call('HSET', KEYS[3], member, now + life)
  end
  redis.call('PEXPIRE', KEYS[2], 10000)
  redis.call('PEXPIRE', KEYS[3], 10000)
end
-- Tells a member that its turn may have come, or what it was granted. It never fails: without permission
-- for the channel, waiters find out by themselves. While it is not known whose turn it is, the last
-- member is told: it probably lives, and drops more of the dead when it asks.
--
-- A channel whose name ends in ':shard:' and the id belongs to a slot. Only the nodes of the slot's
-- shard know it, unless they are older than Redis 7.
local function tell(channels, member, said)
  if member == '' then
    member = redis.call('ZRANGE', KEYS[2], -1, -1)[1]
  end
  local channel, place = channels .. string.sub(member, 1, 22), string.sub(member, 23) .. (said or '')
  if string.sub(channels, -7) == ':shard:' then
    if type(redis.pcall('SPUBLISH', channel, place)) == 'number' then
      return
    end
  end
  redis.pcall('PUBLISH', channel, place)
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
  return tonumber(redis.call('ZSCORE', KEYS[4], member) or 0)
end
-- How many holders there may be if one joins who asked for that limit, and how many there are.
local function limit(value, asked, now)
  local n = asked
  if not value then
    return n, 0
  end
  if number(value) < asked then -- the holder that asked for fewer may have gone
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. now, '+inf')) do
      n = math.min(n, tonumber(string.match(member, '%d+$')))
    end
  end
  return n, redis.call('ZCOUNT', KEYS[4], '(' .. now, '+inf')
end
-- When the first holder ends, and when the last one does.
local function first_end(now)
  return tonumber(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now)
end
local function last_end()
  return tonumber(redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2] or 0)
end
-- Ends the ownership of one holder, and says when the last of the others ends, 0 if there is none. The
-- first write ends it. What follows only shortens the life of what is left, and may fail.
local function remove(me, now)
  local two = redis.call('ZRANGE', KEYS[4], -2, -1, 'WITHSCORES') -- if I am the last, the one before counts
  local last = tonumber(two[3] == me and two[2] or two[4] or 0)
  if last <= now then
    redis.call('DEL', KEYS[1], KEYS[4])
    return 0
  end
  redis.call('ZREM', KEYS[4], me)
  redis.pcall('PEXPIRE', KEYS[1], last - now)
  redis.pcall('PEXPIRE', KEYS[4], last - now)
  return last
end
local now = clock()
local me, asked = ARGV[2], tonumber(ARGV[5])
local value = redis.call('GET', KEYS[1])
if together(value, me) and ends(me) > now then -- as in wait.lua
  return {1}
end
stand(ARGV[1], now, tonumber(ARGV[3]))
local head, dead = first(now)
if value and not together(value, me) then
  local width = #string.match(me, '^.([^\31]*)')
  if string.sub(value, width + 1, width + 1) ~= '\31' then
    return {2}
  end
  return {0, redis.call('PTTL', KEYS[1])}
end
if head and head ~= ARGV[1] then
  if not value then
    tell(ARGV[4], head)
  end
  return {0, dead - now}
end
if asked > 0 then
  local n, there = limit(value, asked, now)
  if there >= n then
    return {0, first_end(now) - now}
  end
end
return {1}
