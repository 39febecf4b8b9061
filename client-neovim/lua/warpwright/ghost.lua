-- Ghost text of warpwright in Neovim 0.7 to 0.11, which have no inline completion of their own (0.12 has:
-- vim.lsp.inline_completion). `enable()` asks after a pause in insert mode; the other functions are for keys.
local M = {}

local METHOD = 'textDocument/inlineCompletion'
local PAUSE = 150 -- milliseconds
local AUTOMATIC, INVOKED = 2, 1
local space = vim.api.nvim_create_namespace('warpwright.ghost')

-- What is shown: `buffer`, `row` and `col` (from 0, bytes), `texts`, the `number` of the one that is seen.
local shown
local pending -- { client, id }
local timer = vim.loop.new_timer()

local function client_of(buffer)
  local all = vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = buffer }) or vim.lsp.buf_get_clients(buffer)
  for _, client in pairs(all) do
    if client.server_capabilities.inlineCompletionProvider then return client end
  end
end

local function cancel()
  timer:stop()
  if pending then
    local client, id = pending.client, pending.id
    pending = nil
    if vim.fn.has('nvim-0.11') == 1 then client:cancel_request(id) else client.cancel_request(id) end
  end
end

-- Take away what is shown.
function M.dismiss()
  cancel()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    vim.api.nvim_buf_clear_namespace(shown.buffer, space, 0, -1)
  end
  shown = nil
end

local function cursor()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return row - 1, col
end

local function draw()
  vim.api.nvim_buf_clear_namespace(shown.buffer, space, 0, -1)
  local lines = vim.split(shown.texts[shown.number]:gsub('\r\n', '\n'), '\n', { plain = true })
  local below = {}
  for at = 2, #lines do below[#below + 1] = { { lines[at], 'Comment' } } end
  vim.api.nvim_buf_set_extmark(shown.buffer, space, shown.row, shown.col, {
    virt_text = { { lines[1], 'Comment' } },
    virt_text_pos = vim.fn.has('nvim-0.10') == 1 and 'inline' or 'overlay',
    virt_lines = #below > 0 and below or nil,
  })
end

local function show(buffer, row, col, items)
  local here_row, here_col = cursor()
  if buffer ~= vim.api.nvim_get_current_buf() or row ~= here_row or col ~= here_col or #items == 0 then return end
  local texts = {}
  for _, item in ipairs(items) do texts[#texts + 1] = item.insertText end
  shown = { buffer = buffer, row = row, col = col, texts = texts, number = 1 }
  draw()
end

local function ask(kind, shift)
  M.dismiss()
  local buffer = vim.api.nvim_get_current_buf()
  local client = client_of(buffer)
  if not client then return end
  local row, col = cursor()
  local parameters = vim.lsp.util.make_position_params(0, client.offset_encoding)
  parameters.context = { triggerKind = kind }
  local function answered(err, result)
    pending = nil
    if err or not result or result == vim.NIL then return end
    show(buffer, row, col, result.items or result)
    if shift and shown and #shown.texts > 1 then M.next() end
  end
  local sent, id
  if vim.fn.has('nvim-0.11') == 1 then
    sent, id = client:request(METHOD, parameters, answered, buffer)
  else
    sent, id = client.request(METHOD, parameters, answered, buffer)
  end
  if sent then pending = { client = client, id = id } end
end

-- Ask for the kernel that the comment at the cursor means, whatever its words are.
function M.request() ask(INVOKED) end

-- What is shown now, nil where nothing is.
function M.text() return shown and shown.texts[shown.number] end

-- The next alternative; they are asked for where only the likeliest is here.
function M.next()
  if not shown then return end
  if #shown.texts == 1 then return ask(INVOKED, true) end
  shown.number = shown.number % #shown.texts + 1
  draw()
end

-- Put `count` bytes of what is shown into the text, and show the rest of it.
local function take(count)
  if not shown then return false end
  local at, text = shown, shown.texts[shown.number]
  local lines = vim.split(text:sub(1, count):gsub('\r\n', '\n'), '\n', { plain = true })
  M.dismiss()
  vim.api.nvim_buf_set_text(at.buffer, at.row, at.col, at.row, at.col, lines)
  local row = at.row + #lines - 1
  local col = #lines == 1 and at.col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + 1, col })
  if count < #text then
    shown = { buffer = at.buffer, row = row, col = col, texts = { text:sub(count + 1) }, number = 1 }
    draw()
  end
  return true
end

-- Accept all of it, its first word or its first line. False where nothing is shown.
function M.accept() return take(shown and #shown.texts[shown.number] or 0) end
function M.accept_word()
  local _, last = (M.text() or ''):find('^%s*[%w_]+')
  if not last then _, last = (M.text() or ''):find('^%s*[^%w_%s]+') end
  return take(last or #(M.text() or ''))
end
function M.accept_line()
  local last = (M.text() or ''):find('\n', 2, true)
  return take(last or #(M.text() or ''))
end

-- Whether what is shown goes on with what was just typed; it is then shown further without asking.
local function typed_through()
  if not shown or shown.buffer ~= vim.api.nvim_get_current_buf() then return false end
  local row, col = cursor()
  if row < shown.row or (row == shown.row and col <= shown.col) then return row == shown.row and col == shown.col end
  if row >= vim.api.nvim_buf_line_count(0) then return false end
  local typed = table.concat(vim.api.nvim_buf_get_text(0, shown.row, shown.col, row, col, {}), '\n')
  local texts = {}
  for _, each in ipairs(shown.texts) do
    local text = each:gsub('\r\n', '\n')
    if #text > #typed and text:sub(1, #typed) == typed then texts[#texts + 1] = text:sub(#typed + 1) end
  end
  if #texts == 0 then return false end
  shown = { buffer = shown.buffer, row = row, col = col, texts = texts, number = 1 }
  draw()
  return true
end

local function changed()
  if typed_through() then return end
  M.dismiss()
  timer:start(PAUSE, 0, vim.schedule_wrap(function()
    if vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' then ask(AUTOMATIC) end
  end))
end

-- Show ghost text in CUDA files as one writes.
function M.enable()
  local group = vim.api.nvim_create_augroup('warpwright.ghost', {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, pattern = { '*.cu', '*.cuh' }, callback = callback })
  end
  on({ 'TextChangedI', 'CursorMovedI', 'InsertEnter' }, changed)
  on({ 'InsertLeave', 'BufLeave' }, M.dismiss)
end

return M
