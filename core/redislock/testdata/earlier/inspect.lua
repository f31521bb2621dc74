-- Says who has a name, and who is in its queue. It only reads, and answers no token and no member.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the holders
-- ARGV[1] how many holders, and how many places in the queue, to tell at most
--
-- Answers {kind, label, fence as digits, remaining ms, handle, holders, queue, the clock in ms}. The kind
-- is 0 if nobody has the name, 1 for an owner, 2 for a foreign one, 3 if a release has left it taken, 5 if
-- it was left for a hand-off, 4 if several have it. The list of holders has three values for each: handle, remaining ms, limit (0 for a reader). The
-- list of the queue has two for each place: how long it has waited, in ms, and 1 if it is alive.
-- What a lock's value says. An owner's value is its token, \31, its label, and, once a renewal has told
-- the fence, \31 and the fence. Some values have something else, as wide as a token, in its place, so
-- that nobody owns them: '=' is kept after a release, '!' is kept for a hand-off, '+' and '*' are shared
-- (holders.lua). Our values have \31 after the token. A value with another byte there is foreign.
local function owner(value) -- token and \31: the beginning of all values of one tenure
  return string.sub(value, 1, string.find(value, '\31', 1, true))
end
-- The answer to an acquire that is refused: the label, the remaining ms, and a 1 if they are exact.
local function held(value, at, left)
  if string.sub(value, at, at) ~= '\31' then
    return {'', left}
  end
  local last = string.find(value, '\31', at + 1, true) or 0
  return {string.sub(value, at + 1, last - 1), left, string.sub(value, 1, 1) == '=' and 1 or nil}
end
-- What an operator sees of a token, to say which holder is meant. It is no secret, and no later
-- holder has it. It is made only when somebody looks, so locking costs nothing more. A value that
-- begins with no owner's token has a handle made from that beginning.
local function handle(token)
  return string.sub(redis.sha1hex(token), 1, 16)
end
-- The fence in a value, as digits, or ''.
local function fence(value, at)
  return string.match(value, '^%+0*(%d+)') or string.match(value, '^[^\31]*\31(%d+)$', at + 1) or ''
end
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and not string.find(value.err, '^WRONGTYPE') then
  return value
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local holders, line = {}, {}
local answer = {0, '', '', 0, '', holders, line, now}
if value then
  answer[1], answer[4] = 2, redis.call('PTTL', KEYS[1])
end
local at = 23 -- core's tokens have 22 bytes
if type(value) == 'string' and string.sub(value, at, at) == '\31' then
  answer[2], answer[3] = held(value, at)[1], fence(value, at)
  local kind = string.sub(value, 1, 1)
  if kind == '+' or kind == '*' then
    answer[1] = 4
    local several = redis.call('ZRANGE', KEYS[4], -ARGV[1], -1, 'WITHSCORES')
    for i = 1, #several, 2 do
      local ends = tonumber(several[i + 1])
      if ends > now then
        local token, limit = string.match(several[i], '^.([^\31]*)\31(%d*)$')
        holders[#holders + 1] = handle(token)
        holders[#holders + 1] = ends - now
        holders[#holders + 1] = tonumber(limit) or 0
      end
    end
  else
    answer[1] = kind == '=' and 3 or kind == '!' and 5 or 1
    answer[5] = handle(string.sub(value, 1, at - 1))
  end
end
local standing = redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1, 'WITHSCORES')
for i = 1, #standing, 2 do
  local dead = tonumber(redis.call('HGET', KEYS[3], standing[i]) or 0)
  line[#line + 1] = math.max(0, now - tonumber(standing[i + 1]))
  line[#line + 1] = dead > now and dead <= now + 10000 and 1 or 0
end
return answer
