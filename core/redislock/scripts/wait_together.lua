-- wait.lua for a claim that can own a name together with others of its kind.
--
-- KEYS[1] the lock    KEYS[2] the queue    KEYS[3] its beats    KEYS[4] the fence counter
-- KEYS[5] the holders
-- ARGV[1] the member in the queue    ARGV[2] the member among the holders    ARGV[3] how long a member in the queue lives, in ms
-- ARGV[4] the beginning of the channels' names    ARGV[5] the limit, 0 for a reader
-- ARGV[6] \31 and its label, not in every call
-- include line.lua QUEUE=KEYS[2] BEATS=KEYS[3]
-- include label.lua BEATS=KEYS[3]
-- include mint.lua FENCE=KEYS[4]
-- include serve.lua LOCK=KEYS[1] QUEUE=KEYS[2] BEATS=KEYS[3]
-- include holders.lua LOCK=KEYS[1] HOLDERS=KEYS[5]
local now, time = clock()
local me, asked = ARGV[2], tonumber(ARGV[5])
local value = redis.call('GET', KEYS[1])
if together(value, me) and ends(me) > now then -- as in wait.lua
  return {1}
end
stand(ARGV[1], now, tonumber(ARGV[3]))
if ARGV[6] then
  label(ARGV[1], ARGV[6])
end
local head, dead = first(now)
if value and not together(value, me) then
  local width = #string.match(me, '^.([^\31]*)')
  if string.sub(value, width + 1, width + 1) ~= '\31' then
    return {2}
  end
  return {0, redis.call('PTTL', KEYS[1])}
end
if head and head ~= ARGV[1] then
  if not value then
    serve(ARGV[4], now, time)
  end
  return {0, dead - now}
end
if asked > 0 then
  local n, there = limit(value, asked, now)
  if there >= n then
    return {0, first_end(now) - now}
  end
end
return {1}
