-- Makes the owner of a name the first of its readers, and tells the first place in the queue: there is
-- room now.
--
-- KEYS[1] the lock    KEYS[2] the holders    KEYS[3] their notes    KEYS[4] the queue    KEYS[5] its beats
-- ARGV[1] the token and magic byte    ARGV[2] the fence of the owner, which is that of all readers from now on
-- ARGV[3] the TTL in ms    ARGV[4] the label    ARGV[5] the beginning of the channels' names
--
-- Answers 1, or 0 for "not the owner".
--
-- The lock is written last: until then, the token still owns it. PEXPIRE comes first: under maxmemory, a
-- script whose first write is ZADD is refused, and then the lease would end.
-- include line.lua QUEUE=KEYS[4] BEATS=KEYS[5]
-- include holders.lua LOCK=KEYS[1] HOLDERS=KEYS[2]
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
local me, ttl, now = '+' .. ARGV[1], tonumber(ARGV[3]), clock()
local since = math.min(now, math.floor(tonumber(ARGV[2]) / 1000)) -- a fence is a time in microseconds
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('DEL', KEYS[2], KEYS[3]) -- of earlier readers
redis.call('ZADD', KEYS[2], now + ttl, me)
redis.call('PEXPIRE', KEYS[2], ttl)
redis.pcall('HSET', KEYS[3], me, since .. ' ' .. ARGV[4])
redis.pcall('PEXPIRE', KEYS[3], ttl)
redis.call('SET', KEYS[1], reserved(me, ARGV[2]), 'PX', ttl)
pcall(function() -- an error here would hide that it is a reader
  local head = first(now)
  if head then
    tell(ARGV[5], head)
  end
end)
return 1
