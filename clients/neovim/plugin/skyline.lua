if vim.g.loaded_skyline then
  return
end
vim.g.loaded_skyline = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify_once('skyline needs Neovim 0.10 or later', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('Skyline', function(arguments)
  require('skyline.command').run(arguments.fargs)
end, {
  nargs = '+',
  desc = 'Profile a training step, predict and retune its batch size',
  complete = function(lead, line)
    return require('skyline.command').complete(lead, line)
  end,
})

vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('skyline.attach', {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'skyline' then
      require('skyline.attach').attach(event.buf, client)
    end
  end,
})
