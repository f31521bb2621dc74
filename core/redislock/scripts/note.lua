-- Puts a member that waits in the queue, or keeps it alive there, and leaves its note: the number of its look, and
-- either the rest of its offer, as in line.lua, or \31 and its label if it must be asked. Looks may arrive in
-- another order: the one that was sent last stands. A claim that does not wait has the note ''. Includes say
-- which key BEATS is; line.lua goes before.
local function note(member, text, now, life, rank)
  if text == '' then
    return
  end
  stand(member, now, life, rank)
  local last = string.match(redis.call('HGET', BEATS, '@' .. member) or '', '^%d+')
  if not last or tonumber(last) < tonumber(string.match(text, '^%d+')) then
    redis.call('HSET', BEATS, '@' .. member, text)
  end
end
