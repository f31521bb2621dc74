-- The queue for a name: a sorted set of members by when they came, and a hash, the beats. The beats
-- say when each member is dead unless it is heard of again, in ms of the server's clock. A member is
-- the id of a client's channel, 22 characters, and a place.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), time
end
-- The first member that lives, and when it will be dead. Dead members on the way are dropped.
local function first(line, beats, now)
  while true do
    local member = redis.call('ZRANGE', line, 0, 0)[1]
    if not member then
      return nil
    end
    local dead = tonumber(redis.call('HGET', beats, member) or 0)
    if dead > now + 10000 then -- no member lives for so long: the clock was set back since its last heartbeat
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
-- Puts a member at the end of the queue, or keeps it alive at its place. The queue expires with its
-- last member. Only the sorted set says who is in the queue: it may have been evicted or deleted
-- while the hash was not.
local function stand(line, beats, member, now, life)
  if not redis.call('ZSCORE', line, member) then
    local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', line, math.max(now, (tonumber(last) or 0) + 1), member)
  end
  redis.call('HSET', beats, member, now + life)
  redis.call('PEXPIRE', line, 10000)
  redis.call('PEXPIRE', beats, 10000)
end
-- Tells a member that its turn may have come. That is a hint, so it never fails: without permission for
-- the channel, waiters find out by themselves.
--
-- A channel whose name ends in ':shard:' and the id belongs to a slot. Only the nodes of the slot's
-- shard know it, unless they are older than Redis 7.
local function tell(channels, member)
  local channel, place = channels .. string.sub(member, 1, 22), string.sub(member, 23)
  if string.sub(channels, -7) == ':shard:' then
    if type(redis.pcall('SPUBLISH', channel, place)) == 'number' then
      return
    end
  end
  redis.pcall('PUBLISH', channel, place)
end
