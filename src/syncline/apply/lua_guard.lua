-- Prepares an interpreter for one script of a user: apply/lua.py runs this first and calls what it returns.
-- What is not listed here is out of reach afterwards, also through getfenv and package.loaded.
return function(open_libs, seconds)
  local sethook, clock, date, time, difftime = debug.sethook, os.clock, os.date, os.time, os.difftime
  local load_text = load
  local count, pick, kind_of, raise = select, select, type, error
  local string_format, parse_number, floor, infinite = string.format, tonumber, math.floor, math.huge
  local native_tostring, strings = tostring, getmetatable("")
  local match, gsub = string.match, string.gsub
  jit.off()
  jit.flush()

  -- Whole numbers without exponent, fractions as short as they can be read back, large ones with an exponent.
  local function tostring_like_go(value)
    if kind_of(value) ~= "number" then
      return native_tostring(value)
    end
    if value ~= value or value == infinite or value == -infinite then
      return value ~= value and "NaN" or value > 0 and "+Inf" or "-Inf"
    end
    if value == floor(value) and value > -2 ^ 63 and value < 2 ^ 63 then
      return string_format("%.0f", value + 0)
    end
    for digits = 15, 17 do
      local text = string_format("%." .. digits .. "g", value)
      if parse_number(text) == value then
        local lead, exponent = match(string_format("%." .. digits - 1 .. "e", value), "^(.*)e(.*)$")
        local power = parse_number(exponent)
        return (power < -4 or power >= 6) and (gsub(lead, "%.?0*$", "")) .. "e" .. exponent or text
      end
    end
  end

  -- Without a point a text is a whole number: an exponent alone is none.
  local function tonumber_like_go(...)
    local value, base = ...
    if count("#", ...) == 0 or kind_of(value) ~= "string" or base ~= nil then
      return parse_number(...)
    end
    local text = match(value, "^[ \n\t]*(.-)[ \n\t]*$")
    local known = match(text, "%.") or match(text, "^[+-]?%d+$") or match(text, "^0[xX]%x+$")
    return known and parse_number(text) or nil
  end

  -- Text only: compiled code could leave the interpreter.
  local function load_source(chunk, name, mode, environment)
    if kind_of(chunk) == "function" then
      local parts, part = {}, chunk()
      while part and part ~= "" do
        parts[#parts + 1], part = part, chunk()
      end
      chunk = table.concat(parts)
    end
    if environment ~= nil then
      return load_text(chunk, name or "=<string>", "t", environment)
    end
    return load_text(chunk, name or "=<string>", "t")
  end

  local function silent() end
  local clock_only = { time = time, date = date }
  local kept = {
    assert = assert, collectgarbage = collectgarbage, error = error, getmetatable = getmetatable, ipairs = ipairs,
    next = next, pairs = pairs, pcall = pcall, rawequal = rawequal, rawget = rawget, rawset = rawset,
    select = select, setmetatable = setmetatable, tonumber = tonumber_like_go, tostring = tostring_like_go, type = type,
    unpack = unpack, xpcall = xpcall, getfenv = getfenv, setfenv = setfenv, table = table,
    load = load_source, loadstring = load_source, print = silent, _VERSION = "Lua 5.1",
  }
  table.move, table.foreach, table.foreachi = nil, nil, nil
  local modules = { os = clock_only, table = table }
  local deadline
  -- Once the time is over every single instruction fails, so that no pcall can go on.
  local watch
  function watch()
    if clock() > deadline then
      sethook(watch, "", 1)
      raise("the script ran longer than " .. seconds .. " s", 0)
    end
  end

  if open_libs then
    local create = coroutine.create
    local function watched(body)
      local made = create(body)
      sethook(made, watch, "", 1000)
      return made
    end
    coroutine.create = watched
    coroutine.wrap = function(body)
      local made, resume = watched(body), coroutine.resume
      local function answer(ok, ...)
        if not ok then
          raise((...), 0)
        end
        return ...
      end
      return function(...)
        return answer(resume(made, ...))
      end
    end
    string.dump = nil
    kept.string, kept.math, kept.coroutine, kept.io = string, math, coroutine, {}
    kept.os = { time = time, date = date, clock = clock, difftime = difftime }
    modules.os = kept.os
    math.huge = 1.7976931348623157e308
  else
    strings.__index = nil
  end
  kept.package = { loaded = modules, preload = {}, path = "", cpath = "" }
  kept.require = function(name)
    local found = modules[name]
    if found == nil then
      raise("module '" .. native_tostring(name) .. "' not found", 2)
    end
    return found
  end

  for name in pairs(package.loaded) do
    package.loaded[name] = nil
  end
  local globals = _G
  for name in pairs(globals) do
    globals[name] = nil
  end
  for name, value in kept.next, kept do
    globals[name] = value
  end
  globals._G = globals

  local function last(...)
    local number = count("#", ...)
    if number == 0 then
      return "nil", nil
    end
    local value = (pick(number, ...))
    return kind_of(value), value
  end

  return function(script, names)
    for name, value in kept.pairs(names) do
      globals[name] = value
    end
    local chunk, why = load_text(script, "=<string>", "t")
    if chunk == nil then
      raise(why, 0)
    end
    deadline = clock() + seconds
    sethook(watch, "", 1000)
    return last(chunk())
  end
end
