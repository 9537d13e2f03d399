--- What happens in a buffer when the server attaches to it: hints and lenses are switched on.

local M = {}

local options = function()
  return require('skyline.config').options
end

---@param bufnr integer
---@param client_id integer
local function show_lenses(bufnr, client_id)
  if vim.fn.has('nvim-0.12') == 1 then
    vim.lsp.codelens.enable(true, { bufnr = bufnr })
    return
  end
  local group = vim.api.nvim_create_augroup('skyline.lenses.' .. bufnr, {})
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      vim.lsp.codelens.refresh({ bufnr = bufnr })
    end,
  })
  vim.api.nvim_create_autocmd('LspDetach', {
    group = group,
    buffer = bufnr,
    callback = function(event)
      if event.data.client_id == client_id then
        vim.api.nvim_del_augroup_by_id(group)
        return true
      end
    end,
  })
  vim.lsp.codelens.refresh({ bufnr = bufnr })
end

--- Fetch the lenses of a client's visible buffers again; for Neovim before 0.12, which has no such request.
---@param client_id integer
function M.refresh_lenses(client_id)
  if not options().code_lenses then
    return
  end
  for _, bufnr in ipairs(vim.lsp.get_buffers_by_client_id(client_id)) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.fn.bufwinid(bufnr) ~= -1 then
      vim.lsp.codelens.refresh({ bufnr = bufnr })
    end
  end
end

---@param bufnr integer
---@param client vim.lsp.Client
function M.attach(bufnr, client)
  if options().inlay_hints then
    vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  end
  if options().code_lenses then
    show_lenses(bufnr, client.id)
  end
end

return M
