/** Addresses of the panel's page: how the user's window reaches it, and who may embed it. */

import { env, UIKind, Uri } from "vscode";

/**
 * The page's address for whoever looks at it. A desktop editor forwards the port where the server runs on another
 * machine; the web's proxy would change the address's host and path, which the page's server refuses.
 */
export async function reachable(address: Uri): Promise<Uri> {
  return env.uiKind === UIKind.Desktop ? env.asExternalUri(address) : address;
}

/** Where the editor's own pages come from, which the panel's server must let embed its page. */
export async function embedders(): Promise<string[]> {
  if (env.uiKind === UIKind.Desktop) {
    // Those of the desktop are known to the server.
    return [];
  }
  const own = await env.asExternalUri(Uri.parse("http://127.0.0.1:1/"));
  return [`${own.scheme}://${own.authority}`];
}
