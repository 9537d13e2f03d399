--- `:checkhealth skyline`

local M = {}

local health = vim.health

---@param cmd any
---@return boolean
local function check_command(cmd)
  if type(cmd) ~= 'table' then
    health.info('the server is started by a function')
    return true
  end
  if vim.fn.executable(cmd[1]) == 0 then
    health.error(('"%s" is not an executable'):format(cmd[1]), {
      'pip install skyline-lsp, in any Python 3.10 or later',
      "or tell where it is: require('skyline').setup({ cmd = { '/path/to/skyline-lsp' } })",
    })
    return false
  end
  local ok, result = pcall(function()
    return vim.system({ cmd[1], '--version' }, { text = true }):wait(20000)
  end)
  if ok and result.code == 0 then
    health.ok(('%s (%s)'):format(vim.trim(result.stdout), vim.fn.exepath(cmd[1])))
    return true
  end
  health.error(('"%s --version" failed: %s'):format(cmd[1], ok and vim.trim(result.stderr) or result))
  return false
end

function M.check()
  local config = require('skyline.config')

  health.start('skyline: Neovim')
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.10 or later is needed')
    return
  end
  if vim.lsp.config and not vim.lsp.is_enabled('skyline') then
    health.warn('the server is not enabled', {
      "call require('skyline').setup(), or vim.lsp.enable('skyline'), in your configuration",
    })
  end

  health.start('skyline: server')
  local cmd = vim.lsp.config and vim.lsp.config.skyline and vim.lsp.config.skyline.cmd or config.options.cmd
  check_command(cmd)

  local clients = vim.lsp.get_clients({ name = 'skyline' })
  if #clients == 0 then
    health.info('not running; it starts with a ' .. table.concat(config.options.filetypes, ' or ') .. ' file')
  end
  for _, client in ipairs(clients) do
    local version = vim.tbl_get(client, 'server_info', 'version')
    health.ok(('running%s for %s'):format(version and ' (' .. version .. ')' or '', client.config.root_dir or 'no root'))
    local commands = vim.tbl_get(client.server_capabilities, 'executeCommandProvider', 'commands') or {}
    if not vim.list_contains(commands, 'skyline.profile') then
      health.error('it offers no command to profile: is it skyline-lsp?')
    end
    for bufnr in pairs(client.attached_buffers) do
      local hints = vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) and 'hints on' or 'hints off'
      health.info(('%s: %s'):format(vim.api.nvim_buf_get_name(bufnr), hints))
    end
  end

  health.start('skyline: project')
  health.info('`skyline-lsp doctor` in a terminal checks the interpreter, torch, the device and the cache')
end

return M
