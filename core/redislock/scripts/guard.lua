-- Runs one command on a key, unless a larger fence was seen for the key.
--
-- KEYS[1] the key    KEYS[2] the largest fence seen for it
-- ARGV[1] the fence, in decimal digits    ARGV[2] for how many ms to remember it
-- ARGV[3] the command    ARGV[4...] its arguments after the key
--
-- Answers what the command answers, or the error STALE with the fence that was seen. The fence is
-- stored before the command runs: even if the command fails, the fence was seen.
--
-- Fences are compared as strings of digits: Lua prints a number of this size with only 14 digits.
local mine, seen = ARGV[1], redis.call('GET', KEYS[2])
if seen and string.find(seen, '%D') then
  return redis.error_reply('ERR what is kept beside the key is no fence')
end
if seen and (#seen > #mine or #seen == #mine and seen > mine) then
  return redis.error_reply('STALE ' .. seen)
end
redis.call('SET', KEYS[2], mine, 'PX', ARGV[2])
return redis.pcall(ARGV[3], KEYS[1], unpack(ARGV, 4))
