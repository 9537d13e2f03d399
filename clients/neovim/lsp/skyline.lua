-- Read by Neovim 0.11 and later for `vim.lsp.enable('skyline')`.
return require('skyline.config').client()
