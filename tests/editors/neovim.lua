-- Looks at a kernel in a Neovim (0.7 to 0.12) that a user's init.lua has set up, and writes down what was seen.
-- Environment: WW_RESULT is the file to write.
local seen = { messages = {}, problems = {} }

vim.treesitter.start = function() end -- Debian's packages lack the grammars that colour a hover
vim.notify = function(message) table.insert(seen.messages, tostring(message)) end

local function wait(what, happens)
  if not vim.wait(40000, happens, 20) then table.insert(seen.problems, 'no ' .. what) end
end

local function hover()
  vim.lsp.buf.hover()
  local function window()
    for _, each in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(each).relative ~= '' then return each end
    end
  end
  wait('hover', window)
  if window() then
    local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window()), 0, -1, false)
    seen.hover = table.concat(lines, '\n')
    vim.api.nvim_win_close(window(), true)
  end
end

local function actions()
  vim.ui.select = function(items, options)
    seen.actions = vim.tbl_map(options.format_item or tostring, items)
  end
  vim.lsp.buf.code_action()
  wait('code actions', function() return seen.actions end)
end

local function lenses()
  local found
  wait('code lenses', function()
    if vim.fn.has('nvim-0.12') == 1 then
      found = vim.tbl_map(function(each) return each.lens end, vim.lsp.codelens.get({ bufnr = 0 }))
    else
      found = vim.lsp.codelens.get(0)
    end
    return #found > 0 and found[1].command
  end)
  seen.lenses = vim.tbl_map(function(lens) return lens.command and lens.command.title end, found)
end

local function hints()
  local found
  wait('inlay hints', function()
    found = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #found > 0
  end)
  seen.hints = vim.tbl_map(function(each) return each.inlay_hint.label end, found)
end

local function look()
  wait('diagnostic', function() return #vim.diagnostic.get(0) > 0 end)
  local first = vim.diagnostic.get(0)[1]
  local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
  seen.filetype, seen.root = vim.bo.filetype, client.config.root_dir
  seen.finding = { code = first.code, line = first.lnum + 1 }
  vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
  hover()
  actions()
  if vim.fn.has('nvim-0.8') == 1 then lenses() end
  if vim.lsp.inlay_hint then hints() end
end

local ok, problem = pcall(look)
if not ok then table.insert(seen.problems, problem) end
local file = assert(io.open(vim.env.WW_RESULT, 'w'))
file:write(vim.fn.json_encode(seen))
file:close()
vim.cmd('qa!')
