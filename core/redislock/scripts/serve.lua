-- Gives a free name to the first in the queue, if it has left an offer and half of its life: then it
-- is the owner, for the rest of that life. Otherwise, or if the grant fails, it is told to ask.
--
-- The place goes first, so that an offer is granted only once. What is told of a grant names the
-- offer by its number and its nonce. Includes say which keys LOCK, QUEUE and BEATS are; line.lua and
-- mint.lua go before.
local function serve(channels, now, time)
  local head, dead = first(now)
  if not head then
    return
  end
  local said
  local number, nonce, n, life, value = string.match(redis.call('HGET', BEATS, '@' .. head) or '', '^(%d+) (%S+) (%d+) (%d+) (.+)$')
  if value and dead - now >= tonumber(life) / 2 then
    pcall(function() -- an error here must not keep it from asking
      leave(head)
      n = tonumber(n)
      if n > 1 and first(now) then
        n = math.min(n, 128) -- driver.FencesBesideOthers
      end
      local fence = mint(n, time)
      if redis.call('SET', LOCK, value, 'PX', dead - now, 'NX') then
        said = '\31' .. number .. ' ' .. nonce .. ' ' .. fence
      end
    end)
  end
  tell(channels, head, said or '')
end
