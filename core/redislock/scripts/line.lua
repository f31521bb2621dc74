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
    local member = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    if not member then
      return nil
    end
    local dead = tonumber(redis.call('HGET', BEATS, member) or 0)
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
    redis.call('ZREM', QUEUE, member)
    redis.call('HDEL', BEATS, member, '@' .. member)
  end
end
local function leave(member)
  redis.call('ZREM', QUEUE, member)
  redis.call('HDEL', BEATS, member, '@' .. member)
end
-- Puts a member at the end of the queue, or keeps it alive at its place. The queue expires with its
-- last member. Only the sorted set says who is in the queue: it may have been evicted or deleted
-- while the hash was not. A rank says where it stands: package ranked. Nothing shortens a life, unless the clock was set back: an offer relies on
-- it, and commands with other lives may come late.
local function stand(member, now, life, rank)
  if rank then
    redis.call('ZADD', QUEUE, rank, member)
  elseif not redis.call('ZSCORE', QUEUE, member) then
    local last = redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', QUEUE, math.max(now, (tonumber(last) or 0) + 1), member)
  end
  local dead = tonumber(redis.call('HGET', BEATS, member) or 0)
  if dead < now + life or dead > now + 10000 then
    redis.call('HSET', BEATS, member, now + life)
  end
  redis.call('PEXPIRE', QUEUE, 10000)
  redis.call('PEXPIRE', BEATS, 10000)
end
-- Tells a member that its turn may have come, or what it was granted. It never fails: without permission
-- for the channel, waiters find out by themselves. While it is not known whose turn it is, the last
-- member is told: it probably lives, and drops more of the dead when it asks.
--
-- A channel whose name ends in ':shard:' and the id belongs to a slot. Only the nodes of the slot's
-- shard know it, unless they are older than Redis 7.
local function tell(channels, member, said)
  if member == '' then
    member = redis.call('ZRANGE', QUEUE, -1, -1)[1]
  end
  local channel, place = channels .. string.sub(member, 1, 22), string.sub(member, 23) .. (said or '')
  if string.sub(channels, -7) == ':shard:' then
    if type(redis.pcall('SPUBLISH', channel, place)) == 'number' then
      return
    end
  end
  redis.pcall('PUBLISH', channel, place)
end
