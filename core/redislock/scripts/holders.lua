-- The holders of a name that several own together. They are members of a sorted set, at a key of its
-- own. The score is when a holder ends, in ms of the server's clock. A member is its kind ('+' for a
-- reader, '*' for one of a limited number), its token, the magic byte, and the limit it asked for.
-- While holders live, the lock has a value that no token owns: the kind, a number, the magic byte.
-- The number is the fence of all readers, or the smallest limit. The lock expires with the last holder.
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
local function ends(holders, member)
  return tonumber(redis.call('ZSCORE', holders, member) or 0)
end
-- How many holders there may be if one joins who asked for that limit, and how many there are.
local function limit(value, holders, asked, now)
  local n = asked
  if not value then
    return n, 0
  end
  if number(value) < asked then -- the holder that asked for fewer may have gone
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', holders, '(' .. now, '+inf')) do
      n = math.min(n, tonumber(string.match(member, '%d+$')))
    end
  end
  return n, redis.call('ZCOUNT', holders, '(' .. now, '+inf')
end
-- When the first holder ends, and when the last one does.
local function first_end(holders, now)
  return tonumber(redis.call('ZRANGEBYSCORE', holders, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now)
end
local function last_end(holders)
  return tonumber(redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2] or 0)
end
-- Ends the ownership of one holder, and says when the last of the others ends, 0 if there is none. The
-- first write ends it. What follows only shortens the life of what is left, and may fail.
local function remove(lock, holders, me, now)
  local two = redis.call('ZRANGE', holders, -2, -1, 'WITHSCORES') -- if I am the last, the one before counts
  local last = tonumber(two[3] == me and two[2] or two[4] or 0)
  if last <= now then
    redis.call('DEL', lock, holders)
    return 0
  end
  redis.call('ZREM', holders, me)
  redis.pcall('PEXPIRE', lock, last - now)
  redis.pcall('PEXPIRE', holders, last - now)
  return last
end
