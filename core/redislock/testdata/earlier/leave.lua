-- Leaves the queue, or only withdraws an offer there, and frees the name if the token owns it.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- ARGV[1] the token and magic byte    ARGV[2] the member    ARGV[3] the beginning of the channels' names
-- ARGV[4] the number of the last offer to withdraw; if there is one, the member stays
--
-- A number without the rest keeps offers that come late from standing again.
--
-- Answers 1, or 0 for "not the owner".
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
-- Reserves n fences. Answers the first, as digits, and how many there are if that is more than one. If
-- the last would be more than a second ahead of the clock, it reserves only one. Includes say which key
-- FENCE, the counter, is.
--
-- Fences are strings of digits. Strings of the same length are compared as such: Lua prints a number
-- of this size with only 14 digits.
local function mint(n, time)
  local fence = time[1] .. string.sub('00000' .. time[2], -6)
  local now = tonumber(fence)
  local last = redis.call('GET', KEYS[4])
  if last and (#last ~= #fence or last >= fence) then
    fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now))
  end
  if n > 1 and tonumber(fence) + n - 1 > now + 1000000 then
    n = 1
  end
  if n == 1 then
    redis.call('SET', KEYS[4], fence)
    return fence
  end
  redis.call('SET', KEYS[4], string.format('%.0f', tonumber(fence) + n - 1))
  return fence .. ' ' .. n
end
-- Gives a free name to the first in the queue, if it has left an offer and half of its life: then it
-- is the owner, for the rest of that life. Otherwise, or if the grant fails, it is told to ask.
--
-- The place goes first, so that an offer is granted only once. What is told of a grant names the
-- offer by its number and its nonce. Includes say which keys LOCK, KEYS[2] and BEATS are; line.lua and
-- mint.lua go before.
local function serve(channels, now, time)
  local head, dead = first(now)
  if not head then
    return
  end
  local said
  local number, nonce, n, life, value = string.match(redis.call('HGET', KEYS[3], '@' .. head) or '', '^(%d+) (%S+) (%d+) (%d+) (.+)$')
  if value and dead - now >= tonumber(life) / 2 then
    pcall(function() -- an error here must not keep it from asking
      leave(head)
      n = tonumber(n)
      if n > 1 and first(now) then
        n = math.min(n, 32) -- driver.TurnsBesideOthers
      end
      local fence = mint(n, time)
      if redis.call('SET', KEYS[1], value, 'PX', dead - now, 'NX') then
        said = '\31' .. number .. ' ' .. nonce .. ' ' .. fence
      end
    end)
  end
  tell(channels, head, said or '')
end
local function go(member)
  if not ARGV[4] then
    leave(member)
  elseif redis.call('HEXISTS', KEYS[3], member) == 1 then
    local last = string.match(redis.call('HGET', KEYS[3], '@' .. member) or '', '^%d+')
    if not last or tonumber(last) <= tonumber(ARGV[4]) then
      redis.call('HSET', KEYS[3], '@' .. member, ARGV[4])
    end
  end
end
local value = redis.call('GET', KEYS[1])
local mine = value and string.sub(value, 1, #ARGV[1]) == ARGV[1]
if mine then
  redis.call('DEL', KEYS[1])
else
  go(ARGV[2])
end
pcall(function() -- an error here would hide that the name is free; a place that stays is soon dead
  if mine then
    go(ARGV[2])
  end
  if mine or not value then
    serve(ARGV[3], clock())
  elseif string.find(value, '^[+*].*\31$') then -- there may be room beside others
    local head = first(clock())
    if head then
      tell(ARGV[3], head)
    end
  end
end)
return mine and 1 or 0
