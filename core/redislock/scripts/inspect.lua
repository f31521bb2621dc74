-- Says who has a name, and who is in its queue. It only reads, and answers no token and no member.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders    KEYS[5] their notes
-- ARGV[1] how many holders, and how many places in the queue, to tell at most
--
-- While the slot moves, it may come with the lock alone: then it tells of no queue, and of no single holder.
--
-- Answers {kind, label, number, remaining ms, handle, holders, queue, the clock in ms, kept since}.
--   The kind is 0 if nobody has the name, 1 for an owner, 2 for a foreign one, 3 if a release has left it
--   taken, 5 if it was left for a hand-off, 4 if several have it, 6 if a limited number has it and nothing is
--   known of them. The number is the fence of all readers, as digits; of kind 6 it is the limit.
--   The list of holders has five values for each: handle, remaining ms, limit (0 for a reader), for how many
--   ms it is one, label.
--   The list of the queue has three for each place: how long it has waited, in ms, 1 if it is alive, label.
--   Kept since is by that clock. What is not known is '' or 0.
-- include value.lua
-- include handle.lua
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and not string.find(value.err, '^WRONGTYPE') then
  return value
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local holders, line = {}, {}
local answer = {0, '', '', 0, '', holders, line, now, 0}
if value then
  answer[1], answer[4] = 2, redis.call('PTTL', KEYS[1])
end
local at = 23 -- core's tokens have 22 bytes
if type(value) == 'string' and string.sub(value, at, at) == '\31' then
  answer[2] = held(value, at)[1]
  local kind = string.sub(value, 1, 1)
  if kind == '+' or kind == '*' then
    answer[1] = kind == '*' and not KEYS[4] and 6 or 4
    if kind == '+' or answer[1] == 6 then
      answer[3] = string.match(value, '^.0*(%d+)') or ''
    end
    local several = KEYS[4] and redis.call('ZRANGE', KEYS[4], -ARGV[1], -1, 'WITHSCORES') or {}
    for i = 1, #several, 2 do
      local ends = tonumber(several[i + 1])
      if ends > now then
        local token, limit = string.match(several[i], '^.([^\31]*)\31(%d*)$')
        holders[#holders + 1] = handle(token)
        holders[#holders + 1] = ends - now
        answer[4] = math.max(answer[4], ends - now) -- PTTL rounds in another way
        holders[#holders + 1] = tonumber(limit) or 0
        local since, label = string.match(redis.call('HGET', KEYS[5], several[i]) or '', '^(%d+) (.*)$')
        holders[#holders + 1] = since and math.max(0, now - tonumber(since)) or 0
        holders[#holders + 1] = label or ''
      end
    end
  else
    answer[1] = kind == '=' and 3 or kind == '!' and 5 or 1
    answer[5] = handle(string.sub(value, 1, at - 1))
    answer[9] = answer[1] > 1 and tonumber(string.match(value, '^[^\31]*\31(%d+)$', at + 1)) or 0
  end
end
local standing = KEYS[2] and redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1, 'WITHSCORES') or {}
for i = 1, #standing, 2 do
  local dead = tonumber(redis.call('HGET', KEYS[3], standing[i]) or 0)
  line[#line + 1] = math.max(0, now - tonumber(standing[i + 1]))
  line[#line + 1] = dead > now and dead <= now + 10000 and 1 or 0
  line[#line + 1] = string.match(redis.call('HGET', KEYS[3], '@' .. standing[i]) or '', '^[^\31]*\31(.*)$') or ''
end
return answer
