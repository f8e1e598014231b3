-- Replaces records that are still at the version that the caller expects; decides nothing else.
--
-- KEYS: the counter of versions; then the records, PREFIX:{TAG}:r:ID each; in a cluster, where they have one tag, also the
-- tag's set of due entries: so that nothing is written while only some of a slot's keys have moved to another server.
-- ARGV, four for each record: the expected version as its eight bytes, empty where there must be no record; how long to keep
-- it, in microseconds, and how long in milliseconds until Redis may delete it, both empty for ever; the draft's bytes, which
-- are stored as they are.
--
-- The answer: now, then for each record its new version; or what was found instead: its bytes, nil if there is none; or 0
-- if the memory is full and there is no record; or a list with the reason if the record, or its set, is of another type.
-- What is too short to be a record is never replaced.
--
-- An error that the server gives to the script's first write is handed on: nothing has happened then. An error after a write
-- is handed on behind the word HALFWAY. Memory, role, replicas and disk are judged at the first write only.

local FOREVER = 9007199254740992
-- The stamps before a draft.
local STAMPS_BYTES = 32
-- How long after a record's keep its entry in the set may be due: within that, a write need not move the entry.
local SLACK = 300000000

local pcall, sub, pack = redis.pcall, string.sub, struct.pack
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { now }
local version, is_full, is_half_way

local function code_of(result)
  local err = type(result) == 'table' and result.err
  return err and (string.match(err, '^%-?(%u+)') or 'ERR')
end

local function failure(result)
  return (version or is_half_way) and redis.error_reply('HALFWAY ' .. result.err) or result
end

-- Writes a change of a record that is there: also if the memory is full, or granted runs could not be settled. Redis
-- refuses only the first write of a script, and never one that needs no memory.
local function write(key, ...)
  local result = pcall(...)
  if code_of(result) == 'OOM' then
    is_full = true
    pcall('ZREM', sub(key, 1, -67) .. 'due', '')
    result = pcall(...)
  end
  return result
end

-- The key ends with `r:` and 64 digits.
local function add_due(key, due)
  local score = due == FOREVER and '+inf' or string.format('%.0f', due)
  return write(key, 'ZADD', sub(key, 1, -67) .. 'due', score, sub(key, -64))
end

local last = pcall('GET', KEYS[1])
if code_of(last) then
  return last
end
last = tonumber(last) or 0

for i = 1, #ARGV / 4 do
  local key, at = KEYS[i + 1], 4 * i
  local expected, keep, millis, draft = ARGV[at - 3], ARGV[at - 2], ARGV[at - 1], ARGV[at]
  -- From the counter, so that versions grow also after the record is gone and if the clock is set back; and from the
  -- clock, so that they grow also if a failover lost the counter's last steps. Exact in doubles until the year 2255.
  local next = math.max((version or last) + 1, now)
  local keep_until = keep == '' and FOREVER or now + keep
  local result, found
  if expected == '' then
    if not is_full then
      local value = pack('>I8I8I8I8', next, now, keep_until, keep_until) .. draft
      if keep == '' then
        result = pcall('SET', key, value, 'NX')
      else
        result = pcall('SET', key, value, 'NX', 'PX', millis)
      end
      is_full = code_of(result) == 'OOM'
    end
    if is_full or not result then
      found = pcall('GET', key)
      result = nil
    elseif not result.err then
      local added = add_due(key, keep_until)
      if code_of(added) then
        -- A record that no sweep and no scan would find must not stay.
        is_half_way = code_of(pcall('UNLINK', key))
        result = added
      end
    end
  else
    found = pcall('GETRANGE', key, 0, STAMPS_BYTES - 1)
    if type(found) == 'string' and #found == STAMPS_BYTES and sub(found, 1, 8) == expected then
      local due = struct.unpack('>I8', found, 25)
      local added
      if due > keep_until + SLACK then
        due = keep_until
        added = add_due(key, due)
      end
      if code_of(added) then
        result = added
      else
        local value = pack('>I8I8I8I8', next, now, keep_until, due) .. draft
        if keep == '' then
          result = write(key, 'SET', key, value)
        else
          result = write(key, 'SET', key, value, 'PX', millis)
        end
      end
    elseif type(found) == 'string' then
      found = pcall('GET', key)
    end
  end

  if result == nil then
    if type(found) ~= 'table' then
      reply[i + 1] = (is_full and not found and expected == '') and 0 or found
    elseif code_of(found) == 'WRONGTYPE' then
      reply[i + 1] = { found.err }
    else
      return failure(found)
    end
  elseif not result.err then
    version = next
    reply[i + 1] = version
  elseif code_of(result) == 'WRONGTYPE' then
    reply[i + 1] = { result.err }
  else
    return failure(result)
  end
end

if version then
  local stored = pcall('SET', KEYS[1], string.format('%.0f', version))
  if code_of(stored) then
    return failure(stored)
  end
end
return reply
