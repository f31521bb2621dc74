-- acquire.lua for n claims in one call. Each wants one fence and no marker.
--
-- KEYS[1] the fence counter    KEYS[2i] a lock    KEYS[2i+1] its queue
-- ARGV[i] its value: token, magic byte, label    ARGV[n+i] its TTL in ms; or a single TTL for all
--
-- Answers the first of n consecutive fences if each claim is granted the name with its own. Otherwise answers for each
-- claim: its fence, or {label, remaining ms} of the owner, with a 1 added as in acquire.lua, or 0 if a free name has
-- a queue, or the text of an error. A fault of one key costs no other claim its answer: after the counter,
-- everything is called by pcall.
local n = (#KEYS - 1) / 2
local lines = {}
for i = 1, n do
  lines[i] = KEYS[2 * i + 1]
end
local waiting = redis.call('EXISTS', unpack(lines)) > 0
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[1]) or 0) or 0
local fence = math.max(last + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[1], string.format('%.0f', fence + n - 1))
local answers -- made for the first claim that is not simply granted
for i = 1, n do
  local ttl, set = ARGV[n + i] or ARGV[n + 1]
  if not waiting or redis.pcall('EXISTS', KEYS[2 * i + 1]) == 0 then
    set = redis.pcall('SET', KEYS[2 * i], ARGV[i], 'PX', ttl, 'NX')
  end
  if not set or set.err then -- it is held, or has a queue
    if not answers then
      answers = {}
      for j = 1, i - 1 do
        answers[j] = fence + j - 1
      end
    end
    if not set then
-- include value.lua
      local mine, there = owner(ARGV[i]), redis.pcall('GET', KEYS[2 * i])
      if type(there) == 'table' then
        set = there
      elseif not there then
        answers[i] = 0
      elseif string.sub(there, 1, #mine) == mine then
        set = redis.pcall('SET', KEYS[2 * i], ARGV[i], 'PX', ttl)
      else
        local left = redis.pcall('PTTL', KEYS[2 * i])
        answers[i] = type(left) == 'table' and left.err or held(there, #mine, left)
      end
    end
  end
  if answers and set then
    answers[i] = set.err or fence + i - 1
  end
end
return answers or fence
