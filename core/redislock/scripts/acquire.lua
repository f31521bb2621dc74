-- Takes a name, or says who has it.
--
-- KEYS[1] the lock    KEYS[2] the fence counter    KEYS[3] the dedup marker, only if asked for
-- ARGV[1] the value: token, magic byte, label    ARGV[2] the TTL in ms
--
-- Answers the fence as a string, or {label} of a dedup marker, or {label, remaining ms} of
-- the owner.
--
-- The lock is written last: an error reply means that nothing was granted.
if KEYS[3] then
  local done = redis.call('GET', KEYS[3])
  if done then
    return {done}
  end
end
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] then
  local mine = string.match(ARGV[1], '^[^\31]*\31')
  local theirs = string.sub(value, 1, #mine)
  if theirs ~= mine then
    local ours = string.sub(theirs, -1) == '\31' -- written by a client of this library
    return {ours and string.sub(value, #mine + 1) or '', redis.call('PTTL', KEYS[1])}
  end
end
-- A token that owns the name already gets a new fence and its full TTL again.
--
-- Fences are strings of digits, and compared as such while they have the same length: Lua
-- prints a number of this size with 14 digits, and string.format is slow.
local now = redis.call('TIME')
local fence = now[1] .. string.sub('00000' .. now[2], -6)
local last = redis.call('GET', KEYS[2])
if last and (#last ~= #fence or last >= fence) then
  fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, tonumber(fence)))
end
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
