-- Gives each holder its full TTL again, if it still is a holder.
--
-- KEYS[3i-2] a lock    KEYS[3i-1] its holders    KEYS[3i] their notes
-- ARGV[2i-1] the member    ARGV[2i] its TTL in ms, 0 to verify only
--
-- While the slot moves, an extension comes without the notes.
--
-- Answers for each: 1, or 0 for "not the owner", or the text of an error. Its first write is one
-- that maxmemory does not refuse.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function extend(i, me, ttl)
-- include holders.lua LOCK=KEYS[3 * i - 2] HOLDERS=KEYS[3 * i - 1]
  if not together(redis.call('GET', KEYS[3 * i - 2]), me) or ends(me) <= now then
    return 0
  end
  if ttl > 0 then
    local last = math.max(now + ttl, last_end())
    redis.call('PEXPIRE', KEYS[3 * i - 2], last - now)
    redis.call('PEXPIRE', KEYS[3 * i - 1], last - now)
    redis.call('ZADD', KEYS[3 * i - 1], now + ttl, me)
    if KEYS[3 * i] then
      redis.pcall('PEXPIRE', KEYS[3 * i], last - now)
    end
  end
  return 1
end
local answers = {}
for i = 1, #ARGV / 2 do
  local ok, answer = pcall(extend, i, ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  answers[i] = ok and answer or type(answer) == 'table' and answer.err or tostring(answer)
end
return answers
