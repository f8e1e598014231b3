-- Removes records that are past their keep, and none that is not: it finds and removes them in one go, so a record that
-- was rewritten a moment ago is judged by its new keep.
--
-- KEYS: the sorted sets of what is due, PREFIX:{TAG}:due each. ARGV: how many records at most.
--
-- The answer: now, how many were removed, and how many of the sets hold nothing more that is past its keep.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local removed, left = 0, tonumber(ARGV[1])

for i, due in ipairs(KEYS) do
  local ids = redis.call('ZRANGEBYSCORE', due, '-inf', string.format('%.0f', now), 'LIMIT', 0, left)
  if #ids > 0 then
    local records = {}
    for at, id in ipairs(ids) do
      records[at] = string.sub(due, 1, -4) .. 'r:' .. id
    end
    -- Most are gone by themselves already; what is counted is what is forgotten for good.
    redis.call('UNLINK', unpack(records))
    redis.call('ZREM', due, unpack(ids))
    removed, left = removed + #ids, left - #ids
    if left == 0 then
      return { now, removed, i - 1 }
    end
  end
end

return { now, removed, #KEYS }
