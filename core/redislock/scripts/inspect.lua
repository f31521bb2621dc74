-- Says who has a name, and who stands in line for it. It only reads, and tokens and members stay here.
--
-- KEYS[1] the lock    KEYS[2] the line    KEYS[3] its beats    ARGV[1] of how many in line to tell
--
-- Answers {1, label, fence as digits, remaining ms} of the owner, with {2} in front of a foreign
-- one and {0} if there is none; then for each in line how long it has waited, in ms, and whether
-- it is alive.
local value = redis.pcall('GET', KEYS[1])
local answer
if not value then
  answer = {0, '', '', 0}
elseif type(value) == 'string' and string.sub(value, 23, 23) == '\31' then
  local label, rest = string.match(value, '^([^\31]*)(.*)', 24)
  answer = {1, label, string.match(rest, '^\31(%d+)$') or '', redis.call('PTTL', KEYS[1])}
else
  answer = {2, '', '', redis.call('PTTL', KEYS[1])}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local line = redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1, 'WITHSCORES')
for i = 1, #line, 2 do
  local dead = tonumber(redis.call('HGET', KEYS[3], line[i]) or 0)
  answer[#answer + 1] = math.max(0, now - tonumber(line[i + 1]))
  answer[#answer + 1] = dead > now and dead <= now + 10000 and 1 or 0
end
return answer
