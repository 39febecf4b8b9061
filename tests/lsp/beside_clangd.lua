-- Attaches warpwright and clangd to one buffer in Neovim and writes down what each of them says.
-- Environment: WW_COMMANDS is a JSON object of commands by client's name, WW_PLACES a JSON list of [line, column] from 0,
-- WW_RESULT the file to write.
local decode = vim.json and vim.json.decode or vim.fn.json_decode
local commands = decode(vim.env.WW_COMMANDS)
local places = decode(vim.env.WW_PLACES)
local seen = { diagnostics = {}, places = {}, clients = {} }
local clients = {}

for name, command in pairs(commands) do
  local config = { name = name, cmd = command, root_dir = vim.fn.getcwd() }
  local id = vim.lsp.start and vim.lsp.start(config) or vim.lsp.start_client(config)
  if not vim.lsp.start then vim.lsp.buf_attach_client(0, id) end
  clients[name] = id
end

local function client_of(name) return vim.lsp.get_client_by_id(clients[name]) end

local function asked(name, method, params)
  local answer = client_of(name).request_sync(method, params, 60000, 0)
  return answer and answer.result or nil
end

local function text_of(hover)
  if not hover or hover == vim.NIL then return "" end
  return table.concat(vim.lsp.util.convert_input_to_markdown_lines(hover.contents), "\n")
end

local function run()
  local ready = function()
    for name in pairs(clients) do
      if not (client_of(name) and client_of(name).initialized) then return false end
    end
    return true
  end
  assert(vim.wait(60000, ready, 50), "a server did not start")
  assert(vim.wait(60000, function()
    local sources = {}
    for _, each in ipairs(vim.diagnostic.get(0)) do sources[each.source] = true end
    return sources.warpwright and sources.nvcc
  end, 50), "not all diagnostics came")
  vim.wait(3000, function() return false end, 500) -- clangd's, if any
  for _, each in ipairs(vim.diagnostic.get(0)) do
    table.insert(seen.diagnostics, { source = each.source, line = each.lnum, message = each.message })
  end
  local document = { uri = vim.uri_from_bufnr(0) }
  for _, place in ipairs(places) do
    local params = { textDocument = document, position = { line = place[1], character = place[2] } }
    local found = { line = place[1], column = place[2], hover = {}, completions = {}, definitions = {} }
    for name in pairs(clients) do
      found.hover[name] = text_of(asked(name, "textDocument/hover", params))
      for _, method in ipairs({ "completion", "definition" }) do
        local can = client_of(name).server_capabilities[method .. "Provider"]
        local answer = can and asked(name, "textDocument/" .. method, params) or nil
        local items = answer and answer ~= vim.NIL and (answer.items or answer) or {}
        found[method .. "s"][name] = #items
      end
    end
    table.insert(seen.places, found)
  end
end

local ok, problem = pcall(run)
if not ok then seen.failed = tostring(problem) end
local file = assert(io.open(vim.env.WW_RESULT, "w"))
file:write(vim.fn.json_encode(seen))
file:close()
for name in pairs(clients) do
  if client_of(name) then client_of(name).stop() end
end
vim.wait(2000, function() return false end, 500)
vim.cmd("qa!")
