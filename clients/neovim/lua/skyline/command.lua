--- `:Skyline` and its subcommands: each asks the server and shows the answer.

local show = require('skyline.show')

local M = {}

---@return vim.lsp.Client?
local function client_of(bufnr)
  local clients = vim.lsp.get_clients({ name = 'skyline', bufnr = bufnr })
  -- A command may be given in a window beside the code, such as the quickfix list.
  return clients[1] or vim.lsp.get_clients({ name = 'skyline' })[1]
end

--- Ask the server to run one of its commands.
---@param command string Its name, "skyline." included.
---@param argument table Its argument; `uri` is the current file where it names none.
---@param on_result? fun(result: any, client: vim.lsp.Client)
local function ask(command, argument, on_result)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = client_of(bufnr)
  if not client then
    show.error('the server is not running in this buffer; see :checkhealth skyline')
    return
  end
  local offered = vim.tbl_get(client.server_capabilities, 'executeCommandProvider', 'commands') or {}
  if not vim.list_contains(offered, command) then
    show.error(('this version of skyline-lsp has no %s; upgrade it'):format(command))
    return
  end
  if not argument.uri and client.attached_buffers[bufnr] then
    argument.uri = vim.uri_from_bufnr(bufnr)
  end
  local params = { command = command, arguments = { vim.tbl_isempty(argument) and vim.empty_dict() or argument } }
  local on_reply = function(failure, result)
    if failure then
      show.error(failure.message)
    elseif on_result then
      on_result(result, client)
    end
  end
  if vim.fn.has('nvim-0.11') == 1 then
    client:request('workspace/executeCommand', params, on_reply, bufnr)
  else
    client.request('workspace/executeCommand', params, on_reply, bufnr)
  end
end

---@param text string?
---@return integer?
local function batch_size(text)
  local number = tonumber(text)
  if number and number >= 1 and number % 1 == 0 then
    return number
  end
  show.error(('a batch size is a whole number of at least 1%s'):format(text and (', not ' .. text) or ''))
end

--- Where the edit was not made, the server says so itself.
local function retuned(result)
  local edit = type(result) == 'table' and (result.edit or result) or {}
  if edit.applied then
    local reason = result.edit and type(result.reason) == 'string' and ': ' .. result.reason or ''
    show.info(('batch size %s -> %s%s'):format(edit.old, edit.new, reason))
  end
end

--- Names of the devices that can be asked about, each as one word; empty where the server does not answer at once.
local function device_names()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = client_of(bufnr)
  if not client then
    return {}
  end
  local params = { command = 'skyline.devices', arguments = { vim.empty_dict() } }
  local reply
  if vim.fn.has('nvim-0.11') == 1 then
    reply = client:request_sync('workspace/executeCommand', params, 500, bufnr)
  else
    reply = client.request_sync('workspace/executeCommand', params, 500, bufnr)
  end
  local names = {}
  for _, device in ipairs(reply and reply.result or {}) do
    -- A name may say in whole words what the device is a part of.
    local name = device.device:gsub(',.*', ''):gsub('^NVIDIA ', ''):gsub('^AMD ', ''):gsub(' ', '-')
    table.insert(names, name)
  end
  return names
end

--- Goals of `:Skyline retune`: their names for the server, and what the words after them say.
local goals = {
  throughput = { name = 'throughput', wants = 'samples a second, such as 250' },
  memory = { name = 'memory', wants = 'a peak, such as 6GiB or 80%' },
  ['max-throughput'] = { name = 'maxThroughput' },
  fit = { name = 'fit' },
}

---@class skyline.Subcommand
---@field run fun(words: string[])
---@field complete? fun(words: string[]): string[]

--- Powers of two about the value that the code has now are what people try.
local function some_batch_sizes()
  return { '1', '2', '4', '8', '16', '32', '64', '128', '256', '512' }
end

---@type table<string, skyline.Subcommand>
local subcommands = {
  profile = {
    run = function(words)
      local size = words[1] and batch_size(words[1])
      if size or not words[1] then
        ask('skyline.profile', { batchSize = size })
      end
    end,
    complete = some_batch_sizes,
  },
  cancel = {
    run = function()
      ask('skyline.cancel', {})
    end,
  },
  clear = {
    run = function()
      ask('skyline.clear', {})
    end,
  },
  predict = {
    run = function(words)
      local size = batch_size(words[1])
      if size then
        ask('skyline.predict', { batchSize = size }, show.prediction)
      end
    end,
    complete = some_batch_sizes,
  },
  retune = {
    run = function(words)
      local goal = goals[words[1]]
      if goal then
        local value = goal.wants and table.concat(words, ' ', 2)
        if value == '' then
          show.error(('retune %s wants %s'):format(words[1], goal.wants))
          return
        end
        ask('skyline.retune', { goal = goal.name, value = value }, retuned)
        return
      end
      local size = batch_size(words[1])
      if size then
        ask('skyline.setBatchSize', { batchSize = size }, retuned)
      end
    end,
    complete = function(words)
      if #words > 0 then
        return {}
      end
      local names = vim.tbl_keys(goals)
      table.sort(names)
      return vim.list_extend(names, some_batch_sizes())
    end,
  },
  estimate = {
    run = function(words)
      local size = words[2] and batch_size(words[2])
      if size or not words[2] then
        ask('skyline.estimate', { device = words[1], batchSize = size }, function(result)
          -- Without a device the server asks for one, and shows the answer itself.
          if type(result) == 'table' then
            show.info(result.text)
          end
        end)
      end
    end,
    complete = function(words)
      return #words == 0 and device_names() or some_batch_sizes()
    end,
  },
  preview = {
    run = function(words)
      if words[1] == 'off' then
        ask('skyline.clearPreview', {})
        return
      end
      local size = batch_size(words[1])
      if size then
        ask('skyline.preview', { batchSize = size })
      end
    end,
    complete = function()
      return vim.list_extend({ 'off' }, some_batch_sizes())
    end,
  },
  panel = {
    run = function()
      ask('skyline.openPanel', {})
    end,
  },
  sites = {
    run = function()
      ask('skyline.sites', {}, show.sites)
    end,
  },
  workload = {
    run = function(words)
      local path = words[1] and vim.fs.normalize(vim.fn.fnamemodify(words[1], ':p'))
      ask('skyline.chooseWorkload', { path = path })
    end,
    complete = function(_, lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  status = {
    run = function()
      ask('skyline.status', {}, show.status)
    end,
  },
}

--- Run `:Skyline WORD ...`.
---@param words string[]
function M.run(words)
  local subcommand = subcommands[words[1]]
  if subcommand then
    subcommand.run(vim.list_slice(words, 2))
  else
    show.error(('there is no ":Skyline %s"; see :help :Skyline'):format(words[1]))
  end
end

--- Complete `:Skyline`.
---@param lead string The word under the cursor.
---@param line string The whole command line.
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line:sub(1, #line - #lead), '%s+', { trimempty = true })
  local candidates
  if #words <= 1 then
    candidates = vim.tbl_keys(subcommands)
    table.sort(candidates)
  else
    local subcommand = subcommands[words[2]]
    candidates = subcommand and subcommand.complete and subcommand.complete(vim.list_slice(words, 3), lead) or {}
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

--- Commands of lenses, hints and code actions that have a result to show; the others go straight to the server.
---@type table<string, fun(command: lsp.Command)>
M.client_commands = {
  ['skyline.predict'] = function(command)
    local argument = vim.deepcopy((command.arguments or {})[1] or {})
    -- The server would show the answer by a message of its own.
    argument.show = nil
    ask('skyline.predict', argument, show.prediction)
  end,
}

return M
