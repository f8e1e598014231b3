-- Replaces records that are still at the version that the caller expects; decides nothing else.
--
-- KEYS: the records, PREFIX:{TAG}:r:ID each. In a cluster, where they have one tag, also the tag's counter and its set of
-- what is due: so that, while a slot is on its way to another server, nothing is written until all of them have arrived.
-- ARGV, three for each record: the expected version as its eight bytes, empty where there must be none; how long to
-- keep, in microseconds, empty for ever; the draft's bytes, which are stored and never looked into.
--
-- The answer: now, then for each record its new version, or what was found instead (nil if nothing was).

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { now }

for i = 1, #ARGV / 3 do
  local key = KEYS[i]
  local expected, keep, draft = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local found = redis.call('GET', key)
  if (found and string.sub(found, 1, 8) or '') == expected then
    -- The key ends with `:r:` and 64 digits; what is before them starts the names of the tag's other keys.
    local tag, id = string.sub(key, 1, -68), string.sub(key, -64)
    -- From the counter, so that versions grow also after the record is gone and if the clock is set back; and from the
    -- clock, so that they grow also if a failover lost the counter's last steps. Exact in doubles until the year 2255.
    local version = math.max((tonumber(redis.call('GET', tag .. ':v')) or 0) + 1, now)
    redis.call('SET', tag .. ':v', string.format('%.0f', version))
    local value = struct.pack('>I8I8', version, now) .. draft
    if keep == '' then
      redis.call('SET', key, value)
      redis.call('ZADD', tag .. ':due', '+inf', id)
    else
      local keep_until = now + keep
      -- Rounded up: a record must not be gone before its keep is over.
      redis.call('SET', key, value, 'PXAT', string.format('%.0f', math.ceil(keep_until / 1000)))
      redis.call('ZADD', tag .. ':due', string.format('%.0f', keep_until), id)
    end
    reply[i + 1] = version
  else
    reply[i + 1] = found
  end
end

return reply
