-- What a lock's value says. An owner's value is its token, \31, and its label. Some values have something else, as wide as a token, in its place, so
-- that nobody owns them: '=' is kept after a release, '!' is kept for a hand-off, '+' and '*' are shared
-- (holders.lua). Our values have \31 after the token. A value with another byte there is foreign.
local function owner(value) -- token and \31: the beginning of all values of one grant
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
