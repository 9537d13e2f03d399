-- Drives Neovim through the main job and writes what it holds, as JSON, to $SKYLINE_RESULT.
-- Lines in the result count from 1. Expects the project's providers.py to be the current buffer.

-- A limit for what went wrong, not a measure of speed: a busy machine takes minutes for a run.
local LIMIT_MS = 240000
local result = { hints = {}, messages = {} }

vim.notify = function(message)
  table.insert(result.messages, message)
end

local function finish()
  local file = assert(io.open(vim.env.SKYLINE_RESULT, 'w'))
  file:write(vim.json.encode(result))
  file:close()
  vim.cmd('qall!')
end

---@generic T
---@param what string
---@param value fun(): T?
---@return T
local function wait_for(what, value)
  local found
  vim.wait(LIMIT_MS, function()
    found = value()
    return found
  end, 20)
  return found or error('waited in vain for ' .. what .. '; messages: ' .. vim.inspect(result.messages))
end

local function text(bufnr)
  return table.concat(vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false), '\n') .. '\n'
end

local function find_line(wanted)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    if line:find(wanted, 1, true) then
      return number
    end
  end
  error('there is no line with ' .. wanted)
end

local function hints()
  local found = {}
  for _, item in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
    local label = item.inlay_hint.label
    if type(label) == 'table' then
      label = table.concat(vim.tbl_map(function(part)
        return part.value
      end, label))
    end
    table.insert(found, { line = item.inlay_hint.position.line + 1, text = label })
  end
  return #found > 0 and found or nil
end

--- The text of lenses that are drawn, be it virtual text (before 0.12) or virtual lines.
local function drawn_lenses()
  -- Neovim 0.12 makes its marks when it draws, and without a screen it draws when it is told to.
  vim.cmd('redraw!')
  local found = {}
  for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
    if name:match('codelens') then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
        local chunks = mark[4].virt_text or vim.iter(mark[4].virt_lines or {}):flatten(1):totable()
        local shown = table.concat(vim.tbl_map(function(chunk)
          return chunk[1]
        end, chunks))
        table.insert(found, { line = mark[2] + 1, text = shown })
      end
    end
  end
  return found
end

local function a_lens(wanted)
  return function()
    local found = drawn_lenses()
    for _, lens in ipairs(found) do
      if lens.text:find(wanted, 1, true) then
        return found
      end
    end
  end
end

local function float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      local shown = text(vim.api.nvim_win_get_buf(window))
      vim.api.nvim_win_close(window, true)
      return shown
    end
  end
end

local function message(wanted)
  return function()
    return vim.iter(result.messages):find(function(shown)
      return shown:find(wanted, 1, true)
    end)
  end
end

local function summary()
  local found = vim.tbl_filter(function(diagnostic)
    return diagnostic.source == 'skyline'
  end, vim.diagnostic.get(0))
  return #found > 0 and found or nil
end

local function main()
  -- Without a screen this is its size; Neovim 0.12 draws the lenses that are in sight.
  vim.o.lines, vim.o.columns = 80, 200
  local providers = vim.api.nvim_get_current_buf()
  wait_for('the server', function()
    return vim.lsp.get_clients({ name = 'skyline', bufnr = 0 })[1]
  end)
  result.completion = vim.fn.getcompletion('Skyline ', 'cmdline')
  wait_for('the lens before a run', a_lens('Profile this training step'))

  vim.cmd('Skyline profile')
  result.diagnostics = vim.tbl_map(function(diagnostic)
    return { line = diagnostic.lnum + 1, message = diagnostic.message }
  end, wait_for('the summary', summary))
  result.hints['providers.py'] = wait_for('hints', hints)
  result.lenses = wait_for('lenses', a_lens('profile again'))

  vim.cmd.edit('resnet.py')
  result.hints['resnet.py'] = wait_for('hints of the model', hints)
  vim.api.nvim_win_set_cursor(0, { find_line('x = self.stage5(x)'), 8 })
  vim.lsp.buf.hover()
  result.hover = wait_for('the hover', float)

  vim.cmd.buffer(providers)
  vim.api.nvim_win_set_cursor(0, { find_line('batch_size: int = 8'), 0 })
  local before = text()
  local changed = function()
    return text() ~= before
  end
  vim.cmd('Skyline retune 4')
  wait_for('the message that the size was changed', message('8 -> 4'))
  result.after = text()
  vim.cmd.undo()
  result.undone = text()

  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title:find('Set batch size to 4', 1, true) ~= nil
    end,
  })
  wait_for('the text after a code action', changed)
  result.after_action = text()
  vim.cmd.undo()
  result.undone_action = text()

  -- On a busy machine the measured times may be too noisy to predict from; the server then says so.
  vim.cmd('Skyline predict 4')
  local refused = message('predict')
  result.prediction = wait_for('the prediction', function()
    return float() or refused()
  end)

  vim.cmd('Skyline sites')
  result.sites = wait_for('the sites', function()
    local found = vim.fn.getqflist()
    return #found > 0 and { { line = found[1].lnum, text = found[1].text } } or nil
  end)
  vim.cmd.cclose()

  vim.cmd('Skyline status')
  result.status = wait_for('the status', message('providers.py'))

  vim.ui.open = function(address)
    result.panel = address
  end
  vim.cmd('Skyline panel')
  wait_for('the panel', function()
    return result.panel
  end)

  vim.cmd('Skyline profile 16')
  wait_for('the lens of a run', a_lens('(cancel)'))
  vim.cmd('Skyline cancel')
  wait_for('the lens after the run was cancelled', a_lens('profile again'))

  vim.cmd('Skyline clear')
  wait_for('the lens after the profile was cleared', a_lens('Profile this training step'))

  vim.cmd('checkhealth skyline')
  result.health = text()
end

local ok, failure = xpcall(main, debug.traceback)
if not ok then
  result.error = failure
end
finish()
