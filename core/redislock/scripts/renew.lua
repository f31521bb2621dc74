-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[i] its token and magic byte
-- ARGV[#KEYS + i] its TTL in ms, 0 to verify only; or a single TTL for all
--
-- Answers for each name: 1, or 0 for "not the owner", or the text of an error. A fault of one key
-- costs no other key its renewal. A renewal is a command that maxmemory does not refuse.
local answers, n = {}, #KEYS
for i = 1, n do
  local mine, ttl = ARGV[i], ARGV[n + i] or ARGV[n + 1]
  local there = redis.pcall('GET', KEYS[i])
  if type(there) == 'table' then
    answers[i] = there.err
  elseif not there or string.sub(there, 1, #mine) ~= mine then
    answers[i] = 0
  elseif ttl == '0' then
    answers[i] = 1
  else
    local set = redis.pcall('PEXPIRE', KEYS[i], ttl)
    answers[i] = type(set) == 'table' and set.err or set
  end
end
return answers
