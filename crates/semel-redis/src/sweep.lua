-- Removes records that are past their keep, and none that is not: it finds, judges and removes them in one call, so a record
-- that was rewritten a moment ago is judged by its new keep.
--
-- A record that cannot be read stays, and is not checked again: whether its keep is over is not known.
--
-- KEYS: the sorted sets of due entries: PREFIX:{TAG}:due, or PREFIX:new. ARGV: how many records to check, at most; then, on
-- one server, the prefix: there a record may have an entry in the set of its tag and in that of all tags.
--
-- The answer: now, how many were removed, and how many of the sets hold nothing more that is due. Errors are handed on as in
-- swap.lua.

local FOREVER = 9007199254740992
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local removed, left, prefix = 0, tonumber(ARGV[1]), ARGV[2]
local common = prefix and prefix .. ':new'
local has_written, failure

local function run(...)
  local result = redis.pcall(...)
  if type(result) == 'table' and result.err then
    failure = has_written and redis.error_reply('HALFWAY ' .. result.err) or result
  end
  return result
end

local function write(...)
  if not failure and not (type(run(...)) == 'table' and failure) then
    has_written = true
  end
end

for i, set in ipairs(KEYS) do
  local ids = run('ZRANGEBYSCORE', set, '-inf', string.format('%.0f', now), 'LIMIT', 0, left)
  if failure then
    return failure
  end
  if #ids > 0 then
    -- The first write needs no memory: a sweep must also work when the memory is full.
    write('ZREM', set, '')
  end
  for _, id in ipairs(ids) do
    local start = prefix and prefix .. ':{' .. string.sub(id, 1, 3) .. '}:' or string.sub(set, 1, -4)
    local key = start .. 'r:' .. id
    -- Until when it is kept, when it is checked next, and the first bytes of its draft.
    local found = redis.pcall('GETRANGE', key, 16, 35)
    local is_whole = type(found) == 'string' and string.sub(found, 17) == 'SEML'
    local is_gone = found == '' and not redis.pcall('GET', key)
    local keep_until = is_whole and struct.unpack('>I8', found) or 0
    if not is_whole and not is_gone then
      write('ZADD', set, '+inf', id)
    elseif keep_until <= now then
      -- Most were deleted by Redis already; what is counted is what is forgotten for good.
      write('UNLINK', key)
      write('ZREM', set, id)
      if common then
        write('ZREM', set == common and start .. 'due' or common, id)
      end
      removed = removed + 1
    else
      -- A later write kept it for longer, and left it to the sweep to move the entry.
      write('ZADD', set, keep_until == FOREVER and '+inf' or string.format('%.0f', keep_until), id)
      write('SETRANGE', key, 24, string.sub(found, 1, 8))
    end
    if failure then
      return failure
    end
  end
  left = left - #ids
  if left == 0 then
    return { now, removed, i - 1 }
  end
end

return { now, removed, #KEYS }
