-- Finds the commands of the other scripts that this user may not run on this store's keys. Changes nothing.
--
-- ARGV: the name of a key that is never there. The answer: the refused commands.

local key = ARGV[1]
local commands = {
  { 'TIME' },
  { 'GET', key },
  { 'MGET', key },
  { 'GETRANGE', key, '0', '0' },
  { 'SET', key, '', 'XX' },
  { 'SETRANGE', key, '0', '' },
  { 'ZADD', key, 'XX', '0', 'none' },
  { 'ZCOUNT', key, '0', '0' },
  { 'ZRANGE', key, '0', '0' },
  { 'ZRANGEBYSCORE', key, '0', '0' },
  { 'ZREM', key, 'none' },
  { 'UNLINK', key },
}
local refused = {}
for _, command in ipairs(commands) do
  local result = redis.pcall(unpack(command))
  local err = type(result) == 'table' and result.err or ''
  -- Releases differ in the code of this error.
  if string.find(err, 'NOPERM', 1, true) or string.find(err, "can't run", 1, true) or string.find(err, "can't access", 1, true) then
    refused[#refused + 1] = string.lower(command[1])
  end
end
return refused
