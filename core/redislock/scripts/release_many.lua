-- release.lua for n claims in one call. They leave no marker.
--
-- KEYS[1] the fence counter    KEYS[3i-1] a lock    KEYS[3i] its queue    KEYS[3i+1] the queue's beats
-- ARGV[i] a lock's value: token, magic byte, label    ARGV[n+1] the beginning of the channels' names
--
-- Answers 1 if all are released. Otherwise answers for each claim: 1, or 0 for "not the owner", or the text of an error.
-- Who may not call MGET is asked for each lock by itself.
local n = #ARGV - 1
local locks, lines = {}, {}
for i = 1, n do
  locks[i], lines[i] = KEYS[3 * i - 1], KEYS[3 * i]
end
local values = redis.pcall('MGET', unpack(locks))
local answers, freed, all = {}, {}, true
for i = 1, n do
  local there = values[i]
  if there ~= ARGV[i] then
    there = redis.pcall('GET', KEYS[3 * i - 1]) -- MGET does not tell another type from none
-- include value.lua
    local mine = owner(ARGV[i])
    if type(there) == 'string' and string.sub(there, 1, #mine) == mine then
      there = ARGV[i]
    end
  end
  if there == ARGV[i] then
    freed[#freed + 1], answers[i] = locks[i], 1
  else
    answers[i], all = type(there) == 'table' and there.err or 0, false
  end
end
local gone = #freed == 0 or redis.pcall('DEL', unpack(freed))
if type(gone) == 'table' then -- nothing was deleted
  for i = 1, n do
    answers[i] = answers[i] == 1 and gone.err or answers[i]
  end
  return answers
end
local waiting = redis.pcall('EXISTS', unpack(lines))
if type(waiting) == 'number' and waiting > 0 then
  pcall(function() -- an error here would hide that names are free
    local i -- of what is included, once for all names: the dead of all queues are counted together
-- include line.lua QUEUE=KEYS[3 * i] BEATS=KEYS[3 * i + 1]
-- include mint.lua FENCE=KEYS[1]
-- include serve.lua LOCK=KEYS[3 * i - 1] QUEUE=KEYS[3 * i] BEATS=KEYS[3 * i + 1]
    for each = 1, n do
      i = each
      if answers[i] == 1 and redis.call('EXISTS', KEYS[3 * i - 1]) == 0 then -- a name may come twice
        serve(ARGV[n + 1], clock())
      end
    end
  end)
end
return all and 1 or answers
