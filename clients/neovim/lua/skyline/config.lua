--- What the user chose, and the language client's configuration made of it.

local M = {}

---@class skyline.Options
---@field cmd? string[]|fun(dispatchers: table): table Command that starts the server; as `cmd` of `vim.lsp.Config`.
---@field filetypes? string[] File types the server attaches to.
---@field root_markers? string[] Files or folders that mark a project's root.
---@field trusted? boolean|fun(root: string): boolean Whether a project's code may be run when you ask for a profile.
---@field settings? table The section "skyline" of the server's settings.
---@field inlay_hints? boolean Switch inlay hints on in the buffers of this server.
---@field code_lenses? boolean Show code lenses in the buffers of this server.

---@type skyline.Options
local defaults = {
  cmd = { 'skyline-lsp' },
  filetypes = { 'python' },
  root_markers = { 'pyproject.toml', 'setup.py', 'setup.cfg', 'requirements.txt', '.git' },
  trusted = true,
  settings = {},
  inlay_hints = true,
  code_lenses = true,
}

---@type skyline.Options
M.options = vim.deepcopy(defaults)

---@param options? skyline.Options
function M.set(options)
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(defaults), options or {})
end

--- The project that a buffer belongs to; a file outside of any is a project of its own folder.
---@param bufnr integer
---@return string?
function M.root(bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  return vim.fs.root(bufnr, M.options.root_markers) or (name ~= '' and vim.fs.dirname(name) or nil)
end

---@param root string?
---@return boolean
local function is_trusted(root)
  local trusted = M.options.trusted
  if type(trusted) == 'function' then
    return trusted(root or vim.fn.getcwd()) == true
  end
  return trusted == true
end

---@return table config Fit for `vim.lsp.config()` (Neovim 0.11) and, with a root, for `vim.lsp.start()` (0.10).
function M.client()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  local handlers = {}
  if vim.fn.has('nvim-0.12') == 0 then
    -- Before 0.12 Neovim shows lenses but answers no request to fetch them again.
    capabilities = vim.tbl_deep_extend('force', capabilities, { workspace = { codeLens = { refreshSupport = true } } })
    handlers['workspace/codeLens/refresh'] = function(_, _, context)
      require('skyline.attach').refresh_lenses(context.client_id)
      return vim.NIL
    end
  end
  return {
    name = 'skyline',
    cmd = M.options.cmd,
    filetypes = M.options.filetypes,
    root_dir = function(bufnr, on_dir)
      on_dir(M.root(bufnr))
    end,
    settings = { skyline = M.options.settings },
    capabilities = capabilities,
    handlers = handlers,
    commands = require('skyline.command').client_commands,
    before_init = function(params, config)
      local root = type(config.root_dir) == 'string' and config.root_dir or nil
      params.initializationOptions =
        vim.tbl_extend('force', M.options.settings, { trusted = is_trusted(root) }, config.init_options or {})
    end,
  }
end

return M
