-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[3i-2] its owner: token and magic byte    ARGV[3i-1] its TTL in ms, 0 to verify only
-- ARGV[3i] magic byte and fence, for those who inspect; '' for none
--
-- Answers, for each name, 1, 0 for "not the owner", or the text of an error. What is wrong
-- with one key costs no other key its renewal. It renews with nothing that maxmemory refuses;
-- the value is written only where its fence has changed, and may fail.
local answers = {}
for i, key in ipairs(KEYS) do
  local mine, ttl, fence = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
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
    if set == 1 and string.sub(owner, -#fence) ~= fence and fence ~= '' then
      redis.pcall('SET', key, string.match(owner, '^[^\31]*\31[^\31]*') .. fence, 'PX', ttl)
    end
  end
end
return answers
