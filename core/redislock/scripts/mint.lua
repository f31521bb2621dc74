-- Reserves n fences, or fewer: names share the counter, and it must not be more than a second ahead of the
-- clock. So nobody reserves more than a sixteenth of what is left to that. Answers the first, as digits, and how
-- many there are if that is more than one. Includes say which key
-- FENCE, the counter, is. A floor is for the counter: all later fences are larger.
--
-- Fences are strings of digits. Strings of the same length are compared as such: Lua prints a number
-- of this size with only 14 digits.
local function mint(n, time, floor)
  local fence = time[1] .. string.sub('00000' .. time[2], -6)
  local now = tonumber(fence)
  local last = redis.call('GET', FENCE)
  if last and (#last ~= #fence or last >= fence) then
    fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now))
  end
  if floor and tonumber(fence) < tonumber(floor) then
    fence = floor
  end
  if n > 1 then
    n = math.max(1, math.min(n, math.floor((now + 1000000 - tonumber(fence)) / 16)))
  end
  if n == 1 then
    redis.call('SET', FENCE, fence)
    return fence
  end
  redis.call('SET', FENCE, string.format('%.0f', tonumber(fence) + n - 1))
  return fence .. ' ' .. n
end
