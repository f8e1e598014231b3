-- Replaces records that are still at the version that the caller expects; decides nothing else.
--
-- KEYS: the counter of versions, PREFIX:v; then the records, PREFIX:{TAG}:r:ID each; in a cluster, where they have one tag,
-- also the tag's set of due entries: so that nothing is written while only some of a slot's keys have moved to another server.
-- ARGV, three for each record: the expected version as its eight bytes, empty where there must be no record; how long to keep
-- it, in microseconds, empty for ever; the draft's bytes, which are stored as they are.
--
-- The answer: now, then for each record its new version; or what was found instead: its bytes, nil if there is none; or 0
-- if the memory is full and there is no record; or a list with the reason if the record, or the set, is of another type.
-- What is too short to be a record is never replaced.
--
-- An error that the server gives to the script's first write is handed on: nothing has happened then. An error after a write
-- is handed on behind the word HALFWAY. Memory, role, replicas and disk are judged at the first write only.

local FOREVER = 9007199254740992
-- The stamps before a draft. Numbers cost more than text as arguments of a command.
local STAMPS_BYTES, FIRST, LAST = 32, '0', '31'
-- How long after a record's keep its entry in the set may be due: within that, a write need not move the entry.
local SLACK = 300000000

local pcall, sub, pack = redis.pcall, string.sub, struct.pack
local KEYS, ARGV = KEYS, ARGV
local count = #ARGV / 3
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { now }
-- The version that was given out last, in this call; whether the memory is full; whether a record was replaced.
local version, is_full, has_replaced
-- The error that ended the loop: what was written before it is still listed and counted.
local stopped
-- Scores and ids for the set of due entries, and the places of the records that are new.
local due_entries, due_count, created, created_count = {}, 0, {}, 0
-- How long the last record is kept, and until when: as a number, as a score, in milliseconds for Redis, which deletes it
-- not before, and as the stamps behind the version. Most records of a batch are kept for the same time.
local last_keep, keep_until, score, millis, stamps
-- On one server the set of all tags, to which one command adds all entries; a scan moves them to the sets of their tags.
local due_set = KEYS[count + 2] or sub(KEYS[1], 1, -2) .. 'new'

local function code_of(result)
  local err = type(result) == 'table' and result.err
  return err and (string.match(err, '^%-?(%u+)') or 'ERR')
end

local function failure(result)
  return (created_count > 0 or has_replaced) and redis.error_reply('HALFWAY ' .. result.err) or result
end

-- Changes what is there already: also if the memory is full, or granted runs could not be settled. Redis refuses only the
-- first write of a script for that, and never one that needs no memory.
local function write(...)
  local result = pcall(...)
  if code_of(result) == 'OOM' then
    is_full = true
    pcall('ZREM', due_set, '')
    result = pcall(...)
  end
  return result
end

local last = pcall('GET', KEYS[1])
if code_of(last) then
  return last
end
last = tonumber(last) or 0

for i = 1, count do
  local key, at = KEYS[i + 1], 3 * i
  local expected, keep = ARGV[at - 2], ARGV[at - 1]
  -- From the counter, so that versions grow also after the record is gone and if the clock is set back; and from the
  -- clock, so that they grow also if a failover lost the counter's last steps. Exact in doubles until the year 2255.
  local next = (version or last) + 1
  if next < now then
    next = now
  end
  if keep ~= last_keep then
    last_keep = keep
    keep_until = keep == '' and FOREVER or now + keep
    stamps = pack('>I8I8', now, keep_until)
    score = keep == '' and '+inf' or string.format('%.0f', keep_until)
    millis = keep ~= '' and string.format('%.0f', math.ceil(keep_until / 1000) + 1)
  end
  local result, found, due
  if expected == '' then
    if not is_full then
      due = keep_until
      local value = pack('>I8', next) .. stamps .. sub(stamps, 9) .. ARGV[at]
      if millis then
        result = pcall('SET', key, value, 'NX', 'PXAT', millis)
      else
        result = pcall('SET', key, value, 'NX')
      end
      if result and result.err then
        is_full = code_of(result) == 'OOM'
        result = not is_full and result
      elseif result then
        created_count = created_count + 1
        created[created_count] = i
      end
    end
    if not result then
      found = pcall('GET', key)
      if is_full and not found then
        found = 0
      end
    end
  else
    found = pcall('GETRANGE', key, FIRST, LAST)
    if type(found) == 'string' then
      if #found == STAMPS_BYTES and sub(found, 1, 8) == expected then
        local was_due = struct.unpack('>I8', found, 25)
        if was_due > keep_until + SLACK then
          due = keep_until
        end
        local value = pack('>I8', next) .. stamps .. (due and sub(stamps, 9) or sub(found, 25)) .. ARGV[at]
        if millis then
          result = write('SET', key, value, 'PXAT', millis)
        else
          result = write('SET', key, value)
        end
        has_replaced = has_replaced or not result.err
      else
        found = pcall('GET', key)
      end
    end
  end

  local err = result or found
  err = type(err) == 'table' and err.err and err
  if not err then
    if result then
      version = next
      if due then
        due_entries[due_count + 1] = score
        -- The key ends with `r:` and 64 digits.
        due_entries[due_count + 2] = sub(key, -64)
        due_count = due_count + 2
      end
    end
    reply[i + 1] = result and next or found
  elseif code_of(err) == 'WRONGTYPE' then
    reply[i + 1] = { err.err }
  else
    stopped = err
    break
  end
end

if due_count > 0 then
  local added = write('ZADD', due_set, unpack(due_entries))
  if code_of(added) then
    -- A record that no sweep and no scan would find must not stay.
    for _, i in ipairs(created) do
      if code_of(pcall('UNLINK', KEYS[i + 1])) then
        return failure(added)
      end
      reply[i + 1] = { added.err }
    end
    created_count = 0
    if has_replaced or code_of(added) ~= 'WRONGTYPE' then
      return failure(added)
    end
  end
end

if version then
  local stored = pcall('SET', KEYS[1], string.format('%.0f', version))
  if code_of(stored) then
    return failure(stored)
  end
end
return stopped and failure(stopped) or reply
