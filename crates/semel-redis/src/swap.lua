-- Replaces records that are still at the version that the caller expects; decides nothing else.
--
-- KEYS: the counter of versions; then the records, PREFIX:{TAG}:r:ID each; in a cluster, where they have one tag, also the
-- tag's set of what is due: so that, while a slot is on its way to another server, nothing is written until all have arrived.
-- ARGV, four for each record: the expected version as its eight bytes, empty where there must be none; how long to keep, in
-- microseconds, and how long in milliseconds until Redis may forget it, both empty for ever; the draft's bytes, which are
-- stored and never looked into.
--
-- The answer: now, then for each record its new version, or what was found instead: its bytes, nil if nothing was there, or
-- a list with the reason if what is there is no string. What is too short to be a record is never replaced.

local FOREVER = 9007199254740992
-- The stamps before a draft.
local STAMPS_BYTES = 32
-- How long after a record's keep its entry in the set may be due: within that, a write need not move the entry.
local SLACK = 300000000

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { now }
local version

for i = 1, #ARGV / 4 do
  local key, at = KEYS[i + 1], 4 * i
  -- An error must not end the script here: other records of the batch are written already.
  local found = redis.pcall('GET', key)
  local is_error = type(found) == 'table'
  local is_expected
  if found and not is_error then
    is_expected = #found >= STAMPS_BYTES and string.sub(found, 1, 8) == ARGV[at - 3]
  else
    is_expected = not found and ARGV[at - 3] == ''
  end
  if is_expected then
    -- From the counter, so that versions grow also after the record is gone and if the clock is set back; and from the
    -- clock, so that they grow also if a failover lost the counter's last steps. Exact in doubles until the year 2255.
    version = math.max((version or tonumber(redis.call('GET', KEYS[1])) or 0) + 1, now)
    local keep, draft = ARGV[at - 2], ARGV[at]
    local keep_until = keep == '' and FOREVER or now + keep
    local due = found and struct.unpack('>I8', found, 25)
    if not due or due > keep_until + SLACK then
      due = keep_until
      -- The key ends with `r:` and 64 digits.
      local set, score = string.sub(key, 1, -67) .. 'due', keep == '' and '+inf' or string.format('%.0f', due)
      redis.call('ZADD', set, score, string.sub(key, -64))
    end
    local value = struct.pack('>I8I8I8I8', version, now, keep_until, due) .. draft
    if keep == '' then
      redis.call('SET', key, value)
    else
      redis.call('SET', key, value, 'PX', ARGV[at - 1])
    end
    reply[i + 1] = version
  else
    reply[i + 1] = is_error and { found.err } or found
  end
end

if version then
  redis.call('SET', KEYS[1], string.format('%.0f', version))
end
return reply
