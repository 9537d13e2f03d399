--- How answers of the server look: messages, floats, the quickfix list.

local M = {}

---@param message string
function M.error(message)
  vim.notify('skyline: ' .. message, vim.log.levels.ERROR)
end

---@param message string
function M.info(message)
  vim.notify('skyline: ' .. message, vim.log.levels.INFO)
end

---@param lines string[] Markdown.
local function float(lines)
  vim.lsp.util.open_floating_preview(lines, 'markdown', { border = 'rounded', focus_id = 'skyline' })
end

---@param value number
---@return string
local function plain(value)
  return value >= 100 and ('%.0f'):format(value) or ('%.3g'):format(value)
end

---@param bytes number
---@return string
local function memory(bytes)
  local gib = bytes / 1024 ^ 3
  return gib >= 1 and ('%.2f GiB'):format(gib) or ('%.0f MiB'):format(bytes / 1024 ^ 2)
end

---@param estimate { value: number, low: number, high: number }
---@param format fun(value: number): string
---@param unit string
---@return string
local function interval(estimate, format, unit)
  if estimate.low == estimate.high then
    return ('%s%s'):format(format(estimate.value), unit)
  end
  return ('%s%s (%s to %s)'):format(format(estimate.value), unit, format(estimate.low), format(estimate.high))
end

--- Show a prediction in a float at the cursor.
---@param result table The answer of `skyline.predict`.
function M.prediction(result)
  if type(result) ~= 'table' or type(result.runTimeMs) ~= 'table' then
    M.info('there is nothing to predict from yet; run :Skyline profile')
    return
  end
  local lines = {
    ('**Batch size %d** (%s)'):format(result.batchSize, result.measured and 'measured' or 'predicted'),
    '',
    '- iteration ' .. interval(result.runTimeMs, plain, ' ms'),
    '- throughput ' .. interval(result.samplesPerSecond, plain, ' samples/s'),
  }
  if type(result.peakBytes) == 'table' then
    local fits = result.fits == true and ', fits' or result.fits == false and ', **does not fit**' or ''
    table.insert(lines, '- peak memory ' .. interval(result.peakBytes, memory, '') .. fits)
  end
  for _, problem in ipairs(result.problems or {}) do
    table.insert(lines, '')
    vim.list_extend(lines, vim.split(problem, '\n'))
  end
  float(lines)
end

--- List the places where the batch size is written, best first, in the quickfix list.
---@param sites table[] The answer of `skyline.sites`.
---@param client vim.lsp.Client
function M.sites(sites, client)
  if type(sites) ~= 'table' or #sites == 0 then
    M.info('no place was found where the batch size is written')
    return
  end
  local root = client.config.root_dir or vim.fn.getcwd()
  local items = {}
  for _, site in ipairs(sites) do
    local absolute = vim.startswith(site.path, '/') or site.path:match('^%a:') ~= nil
    local reason = type(site.reason) == 'string' and site.reason ~= '' and ': ' .. site.reason or ''
    table.insert(items, {
      filename = absolute and site.path or vim.fs.joinpath(root, site.path),
      lnum = site.line,
      col = site.column,
      text = ('%s = %s%s%s'):format(site.name, site.value, site.editable and '' or ' (not editable)', reason),
    })
  end
  vim.fn.setqflist({}, ' ', { title = 'Skyline: batch sizes', items = items })
  vim.cmd.copen()
end

--- Say in what state the training step of the current file is.
---@param status table The answer of `skyline.status`.
function M.status(status)
  local words = {}
  local workload, profile, failure = status.workload, status.profile, status.failure
  if type(workload) == 'table' then
    table.insert(words, workload.path)
  end
  table.insert(words, status.trusted == false and 'not trusted' or status.state)
  if type(status.progress) == 'string' then
    table.insert(words, status.progress)
  end
  if type(failure) == 'table' then
    table.insert(words, failure.message)
  elseif type(profile) == 'table' then
    table.insert(words, ('%s ms, peak %s'):format(plain(profile.runTimeMs), memory(profile.peakBytes)))
  end
  M.info(table.concat(words, ': '))
end

return M
