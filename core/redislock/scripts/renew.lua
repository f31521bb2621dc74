-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[i] its value: token, magic byte, label; and magic byte and fence if that is known, for inspect.lua
-- ARGV[#KEYS + i] its TTL in ms, 0 to verify only; or a single TTL for all
--
-- Answers for each name: 1, or 0 for "not the owner", or the text of an error. A fault of one key
-- costs no other key its renewal. The renewal itself is a command that maxmemory does not refuse.
-- The value is written only if its fence has changed, and that may fail.
local answers, n = {}, #KEYS
for i = 1, n do
  local value, ttl = ARGV[i], ARGV[n + i] or ARGV[n + 1]
  local there = redis.pcall('GET', KEYS[i])
  local mine = value
  if there ~= value then
-- include value.lua
    mine = owner(value)
  end
  if type(there) == 'table' then
    answers[i] = there.err
  elseif not there or string.sub(there, 1, #mine) ~= mine then
    answers[i] = 0
  elseif ttl == '0' then
    answers[i] = 1
  else
    local set = redis.pcall('PEXPIRE', KEYS[i], ttl)
    answers[i] = type(set) == 'table' and set.err or set
    if set == 1 and there ~= value and string.find(value, '\31', #mine + 1, true) then
      redis.pcall('SET', KEYS[i], value, 'PX', ttl)
    end
  end
end
return answers
