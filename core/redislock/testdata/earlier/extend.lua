-- Gives each holder its full TTL again, if it still is a holder.
--
-- KEYS[2i-1] a lock    KEYS[2i] its holders    ARGV[2i-1] the member    ARGV[2i] its TTL in ms, 0 to verify only
--
-- Answers for each: 1, or 0 for "not the owner", or the text of an error. Its first write is one
-- that maxmemory does not refuse.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function extend(i, me, ttl)
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
  return tonumber(redis.call('ZSCORE', KEYS[2 * i], member) or 0)
end
-- How many holders there may be if one joins who asked for that limit, and how many there are.
local function limit(value, asked, now)
  local n = asked
  if not value then
    return n, 0
  end
  if number(value) < asked then -- the holder that asked for fewer may have gone
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2 * i], '(' .. now, '+inf')) do
      n = math.min(n, tonumber(string.match(member, '%d+$')))
    end
  end
  return n, redis.call('ZCOUNT', KEYS[2 * i], '(' .. now, '+inf')
end
-- When the first holder ends, and when the last one does.
local function first_end(now)
  return tonumber(redis.call('ZRANGEBYSCORE', KEYS[2 * i], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now)
end
local function last_end()
  return tonumber(redis.call('ZRANGE', KEYS[2 * i], -1, -1, 'WITHSCORES')[2] or 0)
end
-- Ends the ownership of one holder, and says when the last of the others ends, 0 if there is none. The
-- first write ends it. What follows only shortens the life of what is left, and may fail.
local function remove(me, now)
  local two = redis.call('ZRANGE', KEYS[2 * i], -2, -1, 'WITHSCORES') -- if I am the last, the one before counts
  local last = tonumber(two[3] == me and two[2] or two[4] or 0)
  if last <= now then
    redis.call('DEL', KEYS[2 * i - 1], KEYS[2 * i])
    return 0
  end
  redis.call('ZREM', KEYS[2 * i], me)
  redis.pcall('PEXPIRE', KEYS[2 * i - 1], last - now)
  redis.pcall('PEXPIRE', KEYS[2 * i], last - now)
  return last
end
  if not together(redis.call('GET', KEYS[2 * i - 1]), me) or ends(me) <= now then
    return 0
  end
  if ttl > 0 then
    local last = math.max(now + ttl, last_end())
    redis.call('PEXPIRE', KEYS[2 * i - 1], last - now)
    redis.call('PEXPIRE', KEYS[2 * i], last - now)
    redis.call('ZADD', KEYS[2 * i], now + ttl, me)
  end
  return 1
end
local answers = {}
for i = 1, #KEYS / 2 do
  local ok, answer = pcall(extend, i, ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  answers[i] = ok and answer or type(answer) == 'table' and answer.err or tostring(answer)
end
return answers
