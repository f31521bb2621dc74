-- acquire.lua for many claims in one call. Each wants one fence and no marker.
--
-- KEYS[1] the fence counter    KEYS[2i] a lock    KEYS[2i+1] its queue
-- ARGV[2i-1] its value: token, magic byte, label    ARGV[2i] its TTL in ms
--
-- Answers for each claim: its fence, or {label, remaining ms} of the owner, with a 1 added as in
-- acquire.lua, or 0 if a free name has a queue, or the text of an error. A fault of one key costs
-- no other claim its answer: after the counter, everything is called by pcall.
local n = #ARGV / 2
local waiting = 0
local answers = {}
local lines = {}
for i = 1, n do
  lines[i] = KEYS[2 * i + 1]
end
if redis.call('EXISTS', unpack(lines)) > 0 then
  waiting = n
end
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[1]) or 0) or 0
local fence = math.max(last + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[1], string.format('%.0f', fence + n - 1))
-- include value.lua
for i = 1, n do
  local value, ttl = ARGV[2 * i - 1], ARGV[2 * i]
  local set
  if waiting == 0 or redis.pcall('EXISTS', KEYS[2 * i + 1]) == 0 then
    set = redis.pcall('SET', KEYS[2 * i], value, 'PX', ttl, 'NX')
  end
  if not set then -- it is held, or has a queue
    local mine, there = owner(value), redis.pcall('GET', KEYS[2 * i])
    if type(there) == 'table' then
      set = there
    elseif not there then
      answers[i] = 0
    elseif string.sub(there, 1, #mine) == mine then
      set = redis.pcall('SET', KEYS[2 * i], value, 'PX', ttl)
    else
      local left = redis.pcall('PTTL', KEYS[2 * i])
      answers[i] = type(left) == 'table' and left.err or held(there, #mine, left)
    end
  end
  if set then
    answers[i] = set.err or fence + i - 1
  end
end
return answers
