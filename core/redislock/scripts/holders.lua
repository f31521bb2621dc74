-- The holders of a name that several own together. They are members of a sorted set, at a key of its
-- own. The score is when a holder ends, in ms of the server's clock. A member is its kind ('+' for a
-- reader, '*' for one of a limited number), its token, the magic byte, and the limit it asked for.
-- While holders live, the lock has a value that no token owns: the kind, a number, the magic byte.
-- The number is the fence of all readers, or the smallest limit. The lock expires with the last holder.
--
-- Beside them is a hash of notes, by member: since when it is a holder, in ms, and its label. Notes are for
-- people. They expire with the last holder, too, and no error of a note costs anybody a grant.
--
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
  return tonumber(redis.call('ZSCORE', HOLDERS, member) or 0)
end
-- How many holders there may be if one joins who asked for that limit, and how many there are.
local function limit(value, asked, now)
  local n = asked
  if not value then
    return n, 0
  end
  if number(value) < asked then -- the holder that asked for fewer may have gone
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', HOLDERS, '(' .. now, '+inf')) do
      n = math.min(n, tonumber(string.match(member, '%d+$')))
    end
  end
  return n, redis.call('ZCOUNT', HOLDERS, '(' .. now, '+inf')
end
-- When the first holder ends, and when the last one does.
local function first_end(now)
  return tonumber(redis.call('ZRANGEBYSCORE', HOLDERS, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now)
end
local function last_end()
  return tonumber(redis.call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0)
end
