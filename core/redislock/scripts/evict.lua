-- Frees a name whoever holds it, if its fence is known and is this one, and tells the first in line.
--
-- KEYS[1] the lock    KEYS[2] the line    KEYS[3] its beats
-- ARGV[1] the fence    ARGV[2] what the channels' names begin with
--
-- Answers 1, or 0 if nobody has it, or {label, remaining ms} of an owner with another fence.
-- include line.lua
local value = redis.call('GET', KEYS[1])
if not value then
  return 0
end
local label, fence
if string.sub(value, 23, 23) == '\31' then
  label, fence = string.match(value, '^([^\31]*)(.*)', 24)
end
if fence ~= '\31' .. ARGV[1] then
  return {label or '', redis.call('PTTL', KEYS[1])}
end
redis.call('DEL', KEYS[1])
pcall(function() -- an error here would hide that the name is free
  local head = first(KEYS[2], KEYS[3], clock())
  if head then
    tell(ARGV[2], head)
  end
end)
return 1
