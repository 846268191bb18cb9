// Runs a program or a test of lopa, compiled for wasm32-wasip1, in Node: it may read the folder it was started in, and
// temporary files.
//   usage: node packaging/platforms/node.mjs PROGRAM.wasm [ARGUMENT ...]
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { WASI } from "node:wasi";

process.removeAllListeners("warning");
const [program, ...args] = process.argv.slice(2);
const preopens = { ".": ".", [process.cwd()]: process.cwd(), "/tmp": tmpdir() };
const wasi = new WASI({ version: "preview1", args: [program, ...args], env: process.env, preopens, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
