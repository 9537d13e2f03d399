// Bundles the page's source into the Python package. Run it after every change here, and commit what it writes.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));

// By this a test tells whether the committed bundle is this source's.
const digest = createHash("sha256");
for (const name of readdirSync(`${here}src`).sort()) {
  digest.update(`${name}\0`);
  digest.update(readFileSync(`${here}src/${name}`));
}

const target = `${here}../../skyline_lsp/panel/static/`;
const { metafile } = await build({
  metafile: true,
  absWorkingDir: here,
  entryPoints: [`${here}src/main.ts`],
  outfile: `${target}panel.js`,
  bundle: true,
  format: "iife",
  target: ["es2022"],
  minify: true,
  charset: "ascii",
  legalComments: "none",
  banner: {
    js: `// skyline-lsp's panel, built from clients/panel (sources ${digest.digest("hex")}). Licences: THIRD_PARTY.md`,
  },
});

// Whose code the bundle holds, and under which terms.
const packages = new Set();
for (const output of Object.values(metafile.outputs)) {
  for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (found && bytesInOutput > 0) packages.add(found[1]);
  }
}
const terms = new Map();
for (const name of [...packages].sort()) {
  const folder = `${here}node_modules/${name}/`;
  const { version, license } = JSON.parse(readFileSync(`${folder}package.json`, "utf8"));
  const text = readFileSync(`${folder}LICENSE`, "utf8").trim();
  terms.set(text, [...(terms.get(text) ?? []), `${name} ${version} (${license})`]);
}
const parts = ["# What `panel.js` holds besides this project's own code", "Written by `clients/panel/build.mjs`."];
for (const [text, names] of terms) {
  parts.push(`## ${names.join(", ")}`, text.split("\n").map((line) => `    ${line}`.trimEnd()).join("\n"));
}
writeFileSync(`${target}THIRD_PARTY.md`, `${parts.join("\n\n")}\n`);
