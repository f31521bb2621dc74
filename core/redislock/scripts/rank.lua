-- Says which rank comes behind all places in the queue for a name: package ranked.
--
-- KEYS[1] the queue
--
-- Answers it as a string of digits.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
return string.format('%.0f', (math.floor(math.max(now, tonumber(last) or 0)) + 1) * 4096)
