-- Moves entries from the set of all tags to the sets of their tags, where a scan finds ids in order.
--
-- KEYS: the set of all tags, PREFIX:new. ARGV: how many entries to move, at most. The answer: how many were moved.
--
-- Errors are handed on as in swap.lua. The first write needs no memory: a scan must also work when the memory is full.

local common, limit = KEYS[1], ARGV[1]
local entries = redis.pcall('ZRANGE', common, 0, limit - 1, 'WITHSCORES')
if entries.err or #entries == 0 then
  return entries.err and entries or 0
end

local ids, by_tag = {}, {}
for i = 1, #entries, 2 do
  local id = entries[i]
  local tag = string.sub(id, 1, 3)
  local group = by_tag[tag] or {}
  by_tag[tag] = group
  group[#group + 1] = entries[i + 1]
  group[#group + 1] = id
  ids[#ids + 1] = id
end

local removed = redis.pcall('ZREM', common, unpack(ids))
if type(removed) == 'table' then
  return removed
end
local failure
for tag, group in pairs(by_tag) do
  -- An entry that is there may be due earlier.
  local set = string.sub(common, 1, -4) .. '{' .. tag .. '}:due'
  local added = redis.pcall('ZADD', set, 'LT', unpack(group))
  if type(added) == 'table' then
    failure = redis.error_reply('HALFWAY ' .. added.err)
    redis.pcall('ZADD', common, unpack(group))
  end
end
return failure or #ids
