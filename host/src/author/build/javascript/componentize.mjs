// Written by `wharf plugin build`, which runs it with node: what only JavaScript's own tools can do.
//
//   scan ENTRY                prints, as JSON, what the modules import: interfaces of the host, and packages
//   bundle ENTRY OUT          makes one module of several, with esbuild
//   componentize ENTRY WIT OUT  makes the component

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const [command, ...args] = process.argv.slice(2);
try {
  await { scan, bundle, componentize }[command](...args);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

async function scan(entry) {
  // A dependency of componentize-js, so it is always there.
  const ofComponentize = createRequire(import.meta.resolve("@bytecodealliance/componentize-js"));
  const { init, parse } = await import(pathToFileURL(ofComponentize.resolve("es-module-lexer")));
  await init;
  const interfaces = new Set();
  const packages = new Set();
  const seen = new Set();
  const open = [resolve(entry)];
  while (open.length > 0) {
    const file = open.pop();
    if (seen.has(file)) continue;
    seen.add(file);
    if (!existsSync(file)) throw new Error(`${shown(file)} is imported, and is not there`);
    let imports;
    try {
      [imports] = parse(readFileSync(file, "utf8"));
    } catch (error) {
      throw new Error(`${shown(file)}: ${error.message}`);
    }
    for (const { n: specifier } of imports) {
      if (specifier === undefined) continue;
      if (specifier.startsWith("./") || specifier.startsWith("../")) open.push(resolve(dirname(file), specifier));
      else if (specifier.startsWith("wharf:output/")) interfaces.add(specifier.slice("wharf:output/".length).split("@")[0]);
      else packages.add(specifier);
    }
  }
  console.log(JSON.stringify({ interfaces: [...interfaces], packages: [...packages] }));
}

async function bundle(entry, out) {
  const { build } = require("esbuild");
  await build({
    entryPoints: [entry],
    outfile: out,
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    external: ["wharf:*", "wasi:*"],
    logLevel: "warning",
  });
}

async function componentize(entry, wit, out) {
  const { componentize } = await import("@bytecodealliance/componentize-js");
  const { component } = await componentize({
    sourcePath: entry,
    witPath: wit,
    worldName: "plugin",
    // The host gives no wasi:http: requests leave by its own interface.
    disableFeatures: ["http", "fetch-event"],
  });
  writeFileSync(out, component);
}

function shown(file) {
  return relative(process.cwd(), file);
}
