-- What a lock's value says. An owner's is its token, \31, its label, and once a renewal has told it
-- also \31 and the fence. Some have something as wide as a token instead of one, so that nobody owns
-- them: '=' is kept after a release, '!' is kept for a hand-off, '+' and '*' are shared (holders.lua).
-- A value is foreign if its byte at the end of the token, where ours have \31, is another.
local function owner(value) -- token and \31: what all the values of one tenure begin with
  return string.sub(value, 1, string.find(value, '\31', 1, true))
end
-- The answer to an acquire that is refused: the label, what is left, and a 1 if that is exact.
local function held(value, at, left)
  if string.sub(value, at, at) ~= '\31' then
    return {'', left}
  end
  local last = string.find(value, '\31', at + 1, true) or 0
  return {string.sub(value, at + 1, last - 1), left, string.sub(value, 1, 1) == '=' and 1 or nil}
end
