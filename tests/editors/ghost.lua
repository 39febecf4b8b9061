-- Looks at ghost text in a Neovim (0.7 to 0.12) that a user's init.lua has set up, and writes down what was seen.
-- Environment: WW_RESULT is the file to write.
local seen = { problems = {} }
local is_own = vim.fn.has('nvim-0.12') == 1

vim.treesitter.start = function() end -- Debian's packages lack the grammars
vim.notify = function() end

local function wait(what, happens)
  if not vim.wait(150000, happens, 20) then error('no ' .. what) end
end

local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end

local function below(line)
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { line, '' })
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
end

local function drawn(name)
  local space = vim.api.nvim_get_namespaces()[name]
  return vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
end

local function finish()
  local file = assert(io.open(vim.env.WW_RESULT, 'w'))
  file:write(vim.fn.json_encode(seen))
  file:close()
  vim.cmd('qa!')
end

-- In insert mode, which begins once this script has ended: Neovim asks by itself, and what it draws is accepted.
local function of_neovim()
  below('// row-wise softmax of x[rows][cols]')
  vim.cmd('startinsert')
  local before, accepted, turns, timer = text(), false, 0, vim.uv.new_timer()
  timer:start(100, 100, vim.schedule_wrap(function()
    turns = turns + 1
    local marks = drawn('nvim.lsp.inline_completion')
    if not accepted and #marks > 0 then
      seen.shown = marks[1][4].virt_text[1][1]
      seen.lines = #marks[1][4].virt_lines
      accepted = vim.lsp.inline_completion.get()
    elseif accepted and text() ~= before then
      seen.whole = vim.api.nvim_buf_get_lines(0, 1, 2, false)[1] == seen.shown
      timer:stop()
      finish()
    elseif turns > 1500 then
      seen.problems = { 'no ghost text' }
      timer:stop()
      finish()
    end
  end))
end

local function of_plugin()
  local ghost = require('warpwright.ghost')
  below('// row-wise softmax of x[rows][cols]')
  ghost.request()
  wait('ghost text', ghost.text)
  local all = ghost.text()
  seen.shown = vim.split(all, '\n')[1]
  seen.lines = #(drawn('warpwright.ghost')[1][4].virt_lines or {})
  ghost.accept_word()
  seen.word = vim.api.nvim_get_current_line()
  ghost.accept_line()
  seen.line = vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]
  ghost.accept()
  seen.whole = text() == '// row-wise softmax of x[rows][cols]\n' .. all
  seen.left = ghost.text()
  below('// softmax of x')
  ghost.request()
  wait('the likeliest', ghost.text)
  local first = ghost.text()
  ghost.next()
  wait('the next', function() return ghost.text() and ghost.text() ~= first end)
  ghost.dismiss()
  seen.after_dismiss = #drawn('warpwright.ghost')
  below('// the kernel above is slow, and that is known')
  ghost.request()
  vim.wait(1500, function() return false end, 50)
  seen.nothing = ghost.text() == nil
end

local function look()
  wait('client', function()
    local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
    return client and client.initialized ~= false and client.server_capabilities
      and client.server_capabilities.inlineCompletionProvider
  end)
  if is_own then of_neovim() else of_plugin() end
end

local ok, problem = pcall(look)
if not ok then table.insert(seen.problems, tostring(problem)) end
if not (ok and is_own) then finish() end
