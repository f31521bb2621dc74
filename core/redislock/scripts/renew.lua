-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[2i-1] its owner: token and magic byte    ARGV[2i] its TTL in ms, 0 to verify only
--
-- Answers, for each name, 1, 0 for "not the owner", or the text of an error. What is wrong
-- with one key costs no other key its renewal. It writes with nothing that maxmemory refuses.
local answers = {}
for i, key in ipairs(KEYS) do
  local mine, ttl = ARGV[2 * i - 1], ARGV[2 * i]
  local owner = redis.pcall('GET', key)
  if type(owner) == 'table' then
    answers[i] = owner.err
  elseif not owner or string.sub(owner, 1, #mine) ~= mine then
    answers[i] = 0
  elseif ttl == '0' then
    answers[i] = 1
  else
    local set = redis.pcall('PEXPIRE', key, ttl)
    answers[i] = type(set) == 'table' and set.err or set
  end
end
return answers
