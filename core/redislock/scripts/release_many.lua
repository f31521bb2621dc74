-- release.lua for many claims in one call. They leave no marker.
--
-- KEYS[i] a lock
-- ARGV[1] the beginning of the channels' names
-- ARGV[2i] its value: token, magic byte, label    ARGV[2i+1] the key of its queue
--
-- Answers for each claim: 1, or 0 for "not the owner", or the text of an error.
local answers, lines = {}, {}
for i, key in ipairs(KEYS) do
  local value = ARGV[2 * i]
  lines[i] = ARGV[2 * i + 1]
  local there = redis.pcall('GET', key)
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
    local freed = redis.pcall('DEL', key)
    answers[i] = type(freed) == 'table' and freed.err or 1
  end
end
local waiting = redis.pcall('EXISTS', unpack(lines))
if type(waiting) == 'number' and waiting > 0 then
  pcall(function() -- an error here would hide that names are free
-- include line.lua
    local now = clock()
    for i, line in ipairs(lines) do
      local head = answers[i] == 1 and first(line, line .. ':beats', now)
      if head then
        tell(ARGV[1], head)
      end
    end
  end)
end
return answers
