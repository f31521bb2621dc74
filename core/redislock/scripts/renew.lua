-- Gives each name its full TTL again, if the token still owns it.
--
-- KEYS[i] a lock    ARGV[i] its value: token, magic byte, label, and, for those who inspect, magic byte and fence, if that is known
-- ARGV[#KEYS + i] its TTL in ms, 0 to verify only; or a single one for all
--
-- Answers, for each name, 1, 0 for "not the owner", or the text of an error. What is wrong
-- with one key costs no other key its renewal. It renews with nothing that maxmemory refuses;
-- the value is written only where its fence has changed, and may fail.
local answers, n = {}, #KEYS
for i, key in ipairs(KEYS) do
  local value, ttl = ARGV[i], ARGV[n + i] or ARGV[n + 1]
  local there = redis.pcall('GET', key)
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
    local set = redis.pcall('PEXPIRE', key, ttl)
    answers[i] = type(set) == 'table' and set.err or set
    if set == 1 and there ~= value and string.find(value, '\31', #mine + 1, true) then
      redis.pcall('SET', key, value, 'PX', ttl)
    end
  end
end
return answers
