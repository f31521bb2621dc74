-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[i] its token and magic byte
-- ARGV[#KEYS + i] its TTL in ms, 0 to verify only; or a single TTL for all
--
-- Answers 1 if all are renewed. Otherwise answers for each name: 1, or 0 for "not the owner", or the text of an error. A
-- fault of one key costs no other key its renewal. A renewal is a command that maxmemory does not refuse. Who may not call
-- MGET is asked for each lock by itself.
local answers, all, n = {}, true, #KEYS
local values = n > 1 and redis.pcall('MGET', unpack(KEYS)) or {}
for i = 1, n do
  local mine, ttl = ARGV[i], ARGV[n + i] or ARGV[n + 1]
  local there = values[i] or redis.pcall('GET', KEYS[i]) -- MGET does not tell another type from none
  local answer = 1
  if type(there) == 'table' then
    answer = there.err
  elseif not there or string.sub(there, 1, #mine) ~= mine then
    answer = 0
  elseif ttl ~= '0' then
    answer = redis.pcall('PEXPIRE', KEYS[i], ttl)
    answer = type(answer) == 'table' and answer.err or answer
  end
  answers[i], all = answer, all and answer == 1
end
return all and 1 or answers
