-- Ends the ownership of one holder, and says when the last of the others ends, 0 if there is none. The
-- first write ends it. What follows only shortens the life of what is left, and may fail. Includes say
-- which keys LOCK, HOLDERS and NOTES are; holders.lua says what they have. Noted is false if the notes are
-- not among the keys.
local function remove(me, now, noted)
  local two = redis.call('ZRANGE', HOLDERS, -2, -1, 'WITHSCORES') -- if I am the last, the one before counts
  local last = tonumber(two[3] == me and two[2] or two[4] or 0)
  if last <= now then
    redis.call('DEL', LOCK, HOLDERS)
    if noted then
      redis.pcall('DEL', NOTES)
    end
    return 0
  end
  redis.call('ZREM', HOLDERS, me)
  redis.pcall('PEXPIRE', LOCK, last - now)
  redis.pcall('PEXPIRE', HOLDERS, last - now)
  if noted then
    redis.pcall('HDEL', NOTES, me)
    redis.pcall('PEXPIRE', NOTES, last - now)
  end
  return last
end
