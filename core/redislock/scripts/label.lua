-- Notes what to show of a place. An offer has its label in the value that would own the name. A place without
-- one has it in the same field of the beats: the number of its last offer, or 0, and \31 and the label. The
-- number is for offers that come late, as in leave.lua. The label is written once, and again when another
-- caller of the process goes on waiting there. Includes say which key BEATS is.
local function label(member, text)
  local there = redis.call('HGET', BEATS, '@' .. member) or '0'
  local number, offer = string.match(there, '^(%d+)( ?)')
  if text == '\31' then
    text = ''
  end
  if offer == '' and there ~= number .. text then
    redis.call('HSET', BEATS, '@' .. member, number .. text)
  end
end
