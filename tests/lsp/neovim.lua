-- Drives Neovim's own language client (0.7 to 0.12) as a user would, and writes down what was seen.
-- Environment: WW_COMMAND and WW_STEPS are JSON lists, WW_RESULT is the file to write.
-- A step is {"action", title's start}: choose that code action at the first diagnostic, and wait for the text to change;
-- or {"says", "old", "new"}: wait until nvcc says it, put the new words for the old ones, and wait until nvcc is silent
-- and a lens tells the registers.
local decode = vim.json and vim.json.decode or vim.fn.json_decode
local command = decode(vim.env.WW_COMMAND)
local steps = decode(vim.env.WW_STEPS)
local seen = { messages = {}, version = vim.version().minor }

local function finish()
  seen.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n"
  local file = assert(io.open(vim.env.WW_RESULT, "w"))
  file:write(vim.fn.json_encode(seen))
  file:close()
  for _, client in pairs(vim.lsp.get_clients and vim.lsp.get_clients() or vim.lsp.get_active_clients()) do
    client.stop(client)
  end
  vim.wait(2000, function() return false end, 500)
  vim.cmd("qa!")
end

local function note(kind, what)
  table.insert(seen.messages, kind .. ": " .. tostring(what))
end

vim.lsp.handlers["window/showMessage"] = function(_, result) note("showMessage", result.message) end
vim.notify = function(message) note("notify", message) end

local config = { name = "warpwright", cmd = command, root_dir = vim.fn.getcwd() }
if vim.lsp.start then
  vim.lsp.start(config)
else
  vim.lsp.buf_attach_client(0, vim.lsp.start_client(config))
end

local function said_by_nvcc(words)
  for _, found in ipairs(vim.diagnostic.get(0)) do
    if found.source == "nvcc" and found.message:find(words, 1, true) then
      return found
    end
  end
end

local function words_at(found)
  return vim.api.nvim_buf_get_lines(0, found.lnum, found.lnum + 1, false)[1]:sub(found.col + 1, found.end_col)
end

local function lenses()
  local titles = {}
  for _, lens in ipairs(vim.lsp.codelens.get(0)) do
    table.insert(titles, lens.command.title)
  end
  return titles
end

local function compile(step)
  if not vim.wait(step.seconds * 1000, function() return said_by_nvcc(step.says) end, 20) then
    return note("failed", "nvcc did not say " .. step.says)
  end
  local found = said_by_nvcc(step.says)
  seen.compiler = { message = found.message, severity = found.severity, words = words_at(found) }
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "// a line above" })
  vim.wait(5000, function() return said_by_nvcc(step.says) and said_by_nvcc(step.says).lnum == found.lnum + 1 end, 20)
  seen.compiler.moved = words_at(said_by_nvcc(step.says) or found)
  vim.cmd("%s/" .. step.old .. "/" .. step.new .. "/")
  if not vim.wait(step.seconds * 1000, function() return not said_by_nvcc("") end, 20) then
    return note("failed", "nvcc still says something")
  end
  local asked = 0
  local function told()
    -- `vim.wait` looks after each event, and each answer is one: without a pause between them, requests would follow each other.
    if vim.loop.now() - asked >= 200 then
      asked = vim.loop.now()
      vim.lsp.codelens.refresh()
    end
    return table.concat(lenses(), " "):find("registers", 1, true)
  end
  if not vim.wait(step.seconds * 1000, told, 200) then
    return note("failed", "no lens tells the registers")
  end
  seen.lenses = lenses()
end

local function run()
  local function diagnosed() return #vim.diagnostic.get(0) > 0 end
  if not vim.wait(30000, diagnosed, 20) then
    return note("failed", "no diagnostic came")
  end
  local first = vim.diagnostic.get(0)[1]
  seen.diagnostic = {
    code = first.code, source = first.source, message = first.message,
    words = words_at(first),
  }
  if steps[1].says then
    return compile(steps[1])
  end
  for _, step in ipairs(steps) do
    vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
    local before = vim.b.changedtick
    local offered = false
    vim.ui.select = function(items, options, choose)
      seen.offered = vim.tbl_map(options.format_item, items)
      offered = true
      for index, title in ipairs(seen.offered) do
        if title:sub(1, #step.action) == step.action then
          return choose(items[index], index)
        end
      end
      note("failed", "not offered: " .. step.action)
    end
    vim.lsp.buf.code_action()
    if not vim.wait(30000, function() return offered end, 20) then
      return note("failed", "no code actions came")
    end
    if not vim.wait(step.seconds * 1000, function() return vim.b.changedtick ~= before end, 20) then
      return note("failed", "the text did not change after " .. step.action)
    end
  end
  seen.gone = vim.wait(30000, function() return not diagnosed() end, 20)
end

local ok, problem = pcall(run)
if not ok then note("failed", problem) end
finish()
