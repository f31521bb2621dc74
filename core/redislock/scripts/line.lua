-- The line for a name: a sorted set of members by when they came, and a hash that says when
-- each of them is dead, in ms of the server's clock, unless it is heard of again. A member is
-- the id of a client's channel, 22 characters, and a place.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), time
end
-- The first member that lives, and when it is dead. Whoever meets the dead drops them.
local function first(line, beats, now)
  while true do
    local member = redis.call('ZRANGE', line, 0, 0)[1]
    if not member then
      return nil
    end
    local dead = tonumber(redis.call('HGET', beats, member) or 0)
    if dead > now + 10000 then -- nobody lives for so long: the clock was set back since it was heard of
      dead = 0
    end
    if dead > now then
      return member, dead
    end
    redis.call('ZREM', line, member)
    redis.call('HDEL', beats, member)
  end
end
local function leave(line, beats, member)
  redis.call('ZREM', line, member)
  redis.call('HDEL', beats, member)
end
-- Puts a member at the end of the line, or keeps it alive where it stands. The line dies with
-- the last of them. Who stands there is what the sorted set says: it may have been evicted or
-- deleted while the hash was not.
local function stand(line, beats, member, now, life)
  if not redis.call('ZSCORE', line, member) then
    local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', line, math.max(now, (tonumber(last) or 0) + 1), member)
  end
  redis.call('HSET', beats, member, now + life)
  redis.call('PEXPIRE', line, 10000)
  redis.call('PEXPIRE', beats, 10000)
end
-- A hint, so never an error: without permission for the channel, waiters find out by themselves.
--
-- A channel whose name says so is one of the slot's, and known to the nodes of its shard only,
-- unless they are older than Redis 7.
local function tell(channels, member)
  local channel, place = channels .. string.sub(member, 1, 22), string.sub(member, 23)
  if string.sub(channels, -7) == ':shard:' then
    if type(redis.pcall('SPUBLISH', channel, place)) == 'number' then
      return
    end
  end
  redis.pcall('PUBLISH', channel, place)
end
