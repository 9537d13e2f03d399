--- Skyline: what each line of a PyTorch training step costs, next to the line.
---
--- See |skyline.txt|. `setup()` starts the language server in Python buffers; everything else is `:Skyline`.

local M = {}

--- Set the options and start the server in buffers of the configured file types, open ones included.
---@param options? skyline.Options
function M.setup(options)
  local config = require('skyline.config')
  config.set(options)
  if vim.lsp.config then
    vim.lsp.config('skyline', config.client())
    vim.lsp.enable('skyline')
    return
  end
  local start = function(bufnr)
    if vim.bo[bufnr].buftype == '' then
      local client = config.client()
      client.root_dir = config.root(bufnr)
      vim.lsp.start(client, { bufnr = bufnr })
    end
  end
  vim.api.nvim_create_autocmd('FileType', {
    group = vim.api.nvim_create_augroup('skyline.start', {}),
    pattern = config.options.filetypes,
    callback = function(event)
      start(event.buf)
    end,
  })
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.list_contains(config.options.filetypes, vim.bo[bufnr].filetype) then
      start(bufnr)
    end
  end
end

return M
