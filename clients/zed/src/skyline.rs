//! Tells Zed how to start skyline-lsp: the program in the user's settings, else the one on PATH.

use zed_extension_api::{
    self as zed, serde_json::Value, settings::LspSettings, Command, LanguageServerId, Result, Worktree,
};

struct Skyline;

impl zed::Extension for Skyline {
    fn new() -> Self {
        Skyline
    }

    fn language_server_command(&mut self, id: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let named = LspSettings::for_worktree(id.as_ref(), worktree)
            .ok()
            .and_then(|settings| settings.binary)
            .and_then(|binary| binary.path);
        let command = named
            .or_else(|| worktree.which("skyline-lsp"))
            .ok_or("skyline-lsp is not on PATH; pip install skyline-lsp, or name it in lsp.skyline.binary.path")?;
        Ok(Command { command, args: vec![], env: worktree.shell_env() })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        Ok(LspSettings::for_worktree(id.as_ref(), worktree)?.initialization_options)
    }

    fn language_server_workspace_configuration(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let settings = LspSettings::for_worktree(id.as_ref(), worktree)?.settings;
        Ok(settings.map(|given| zed::serde_json::json!({ "skyline": given })))
    }
}

zed::register_extension!(Skyline);
