-- release.lua for many claims in one call. They leave no marker.
--
-- KEYS[1] the fence counter    KEYS[3i-1] a lock    KEYS[3i] its queue    KEYS[3i+1] the queue's beats
-- ARGV[1] the beginning of the channels' names    ARGV[i+1] a lock's value: token, magic byte, label
--
-- Answers for each claim: 1, or 0 for "not the owner", or the text of an error.
local answers, lines = {}, {}
for i = 1, (#KEYS - 1) / 3 do
  local value = ARGV[i + 1]
  lines[i] = KEYS[3 * i]
  local there = redis.pcall('GET', KEYS[3 * i - 1])
  if there and there ~= value and type(there) == 'string' then
-- include value.lua
    local mine = owner(value)
    if string.sub(there, 1, #mine) == mine then
      there = value
    end
  end
  if type(there) == 'table' then
    answers[i] = there.err
  elseif there ~= value then
    answers[i] = 0
  else
    local freed = redis.pcall('DEL', KEYS[3 * i - 1])
    answers[i] = type(freed) == 'table' and freed.err or 1
  end
end
local waiting = redis.pcall('EXISTS', unpack(lines))
if type(waiting) == 'number' and waiting > 0 then
  pcall(function() -- an error here would hide that names are free
    local i -- of what is included, once for all names: the dead of all queues are counted together
-- include line.lua QUEUE=KEYS[3 * i] BEATS=KEYS[3 * i + 1]
-- include mint.lua FENCE=KEYS[1]
-- include serve.lua LOCK=KEYS[3 * i - 1] QUEUE=KEYS[3 * i] BEATS=KEYS[3 * i + 1]
    for each = 1, #lines do
      i = each
      if answers[i] == 1 then
        serve(ARGV[1], clock())
      end
    end
  end)
end
return answers
