-- Gives each holder its full TTL again, if it still is a holder.
--
-- KEYS[2i-1] a lock    KEYS[2i] its holders    ARGV[2i-1] the member    ARGV[2i] its TTL in ms, 0 to verify only
--
-- Answers for each: 1, or 0 for "not the owner", or the text of an error. Its first write is one
-- that maxmemory does not refuse.
-- include line.lua
-- include holders.lua
local now = clock()
local function extend(lock, holders, me, ttl)
  if not together(redis.call('GET', lock), me) or ends(holders, me) <= now then
    return 0
  end
  if ttl > 0 then
    local last = math.max(now + ttl, last_end(holders))
    redis.call('PEXPIRE', lock, last - now)
    redis.call('PEXPIRE', holders, last - now)
    redis.call('ZADD', holders, now + ttl, me)
  end
  return 1
end
local answers = {}
for i = 1, #KEYS / 2 do
  local ok, answer = pcall(extend, KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  answers[i] = ok and answer or type(answer) == 'table' and answer.err or tostring(answer)
end
return answers
