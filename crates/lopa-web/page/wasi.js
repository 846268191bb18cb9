// Runs a WebAssembly program with arguments, files in memory that it may read, and the functions that receive its
// output. It has nothing else: no network, no files of the machine. (A read-only part of WASI, preview 1.)
"use strict";

const ERRNO = { badf: 8, notdir: 54, noent: 44, nosys: 52, rofs: 69 };
const KIND = { device: 2, folder: 3, file: 4 };
const ROOT = 3; // the descriptor of the only folder that is open at first, "/"

class Exit extends Error {
  constructor(code) { super(`exit ${code}`); this.code = code; }
}

// files: { "try.toml": Uint8Array, "runs/one/manifest.json": Uint8Array, … }; out and err receive bytes.
// Returns the exit code.
function runProgram(module, args, files, out, err) {
  const paths = Object.keys(files);
  const isFolder = (path) => path === "" || paths.some((one) => one.startsWith(`${path}/`));
  const entries = (path) => {
    const within = path === "" ? "" : `${path}/`;
    return [...new Set(paths.filter((one) => one.startsWith(within)).map((one) => one.slice(within.length).split("/")[0]))];
  };
  const open = new Map([[0, { device: true }], [1, { sink: out }], [2, { sink: err }], [ROOT, { path: "" }]]);
  let memory;
  const view = () => new DataView(memory.buffer);
  const bytes = (at, length) => new Uint8Array(memory.buffer, at, length);
  const strings = ["lopa-web", ...args].map((text) => new TextEncoder().encode(`${text}\0`));

  // The path below a folder, without "." and "..".
  const resolve = (folder, at, length) => {
    const parts = folder.path ? folder.path.split("/") : [];
    for (const part of new TextDecoder().decode(bytes(at, length).slice()).split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return parts.join("/");
  };
  const stat = (path, at) => {
    const file = files[path];
    if (!file && !isFolder(path)) return ERRNO.noent;
    bytes(at, 64).fill(0);
    view().setBigUint64(at + 8, BigInt(1 + paths.indexOf(path)), true);
    view().setUint8(at + 16, file ? KIND.file : KIND.folder);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt(file ? file.length : 0), true);
    return 0;
  };
  const each = (vectors, count, use) => {
    for (let i = 0; i < count; i++)
      if (use(view().getUint32(vectors + 8 * i, true), view().getUint32(vectors + 8 * i + 4, true)) === false) break;
  };
  const nanoseconds = (milliseconds) => BigInt(Math.round(milliseconds * 1e6));

  const calls = {
    args_sizes_get(count, size) {
      view().setUint32(count, strings.length, true);
      view().setUint32(size, strings.reduce((sum, one) => sum + one.length, 0), true);
      return 0;
    },
    args_get(pointers, buffer) {
      strings.forEach((one, i) => {
        view().setUint32(pointers + 4 * i, buffer, true);
        bytes(buffer, one.length).set(one);
        buffer += one.length;
      });
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get(clock, _, time) {
      view().setBigUint64(time, nanoseconds(clock === 0 ? Date.now() : performance.now()), true);
      return 0;
    },
    random_get(at, length) {
      crypto.getRandomValues(bytes(at, length)); // seeds of hash tables; no result depends on it
      return 0;
    },
    sched_yield: () => 0,
    proc_exit(code) { throw new Exit(code); },

    fd_prestat_get(fd, at) {
      if (fd !== ROOT) return ERRNO.badf;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return 0;
    },
    fd_prestat_dir_name(_, at) {
      bytes(at, 1)[0] = 47; // "/"
      return 0;
    },
    fd_fdstat_get(fd, at) {
      const one = open.get(fd);
      if (!one) return ERRNO.badf;
      bytes(at, 24).fill(0);
      view().setUint8(at, one.path === undefined ? KIND.device : one.content ? KIND.file : KIND.folder);
      view().setBigUint64(at + 8, ~0n & 0xffffffffffffffffn, true);
      view().setBigUint64(at + 16, ~0n & 0xffffffffffffffffn, true);
      return 0;
    },
    fd_filestat_get(fd, at) {
      const one = open.get(fd);
      return one?.path === undefined ? ERRNO.badf : stat(one.path, at);
    },
    path_filestat_get(fd, _, at, length, to) {
      const folder = open.get(fd);
      return folder?.path === undefined ? ERRNO.badf : stat(resolve(folder, at, length), to);
    },
    path_open(fd, _, at, length, flags, rights, _inheriting, _status, to) {
      const folder = open.get(fd);
      if (folder?.path === undefined) return ERRNO.badf;
      const path = resolve(folder, at, length);
      const content = files[path];
      if (flags & ~2) return ERRNO.rofs; // create, exclusive, truncate
      if (!content && !isFolder(path)) return ERRNO.noent;
      if (content && flags & 2) return ERRNO.notdir;
      const next = Math.max(...open.keys()) + 1;
      open.set(next, { path, content, position: 0 });
      view().setUint32(to, next, true);
      return 0;
    },
    fd_read(fd, vectors, count, to) {
      const one = open.get(fd);
      if (!one || one.sink) return ERRNO.badf;
      let total = 0;
      each(vectors, count, (at, length) => {
        const piece = one.content?.subarray(one.position, one.position + length) ?? new Uint8Array();
        bytes(at, piece.length).set(piece);
        one.position += piece.length;
        total += piece.length;
        return piece.length === length;
      });
      view().setUint32(to, total, true);
      return 0;
    },
    fd_seek(fd, offset, whence, to) {
      const one = open.get(fd);
      if (!one?.content) return ERRNO.badf;
      one.position = Number(offset) + [0, one.position, one.content.length][whence];
      view().setBigUint64(to, BigInt(one.position), true);
      return 0;
    },
    fd_write(fd, vectors, count, to) {
      const one = open.get(fd);
      if (!one?.sink) return ERRNO.badf;
      let total = 0;
      each(vectors, count, (at, length) => {
        one.sink(bytes(at, length).slice());
        total += length;
      });
      view().setUint32(to, total, true);
      return 0;
    },
    fd_readdir(fd, buffer, length, cookie, to) {
      const folder = open.get(fd);
      if (folder?.path === undefined) return ERRNO.badf;
      let used = 0;
      for (const [i, name] of [...entries(folder.path).entries()].slice(Number(cookie))) {
        const text = new TextEncoder().encode(name);
        const whole = folder.path === "" ? name : `${folder.path}/${name}`;
        const entry = new DataView(new ArrayBuffer(24 + text.length));
        entry.setBigUint64(0, BigInt(i + 1), true);
        entry.setBigUint64(8, BigInt(i + 1), true);
        entry.setUint32(16, text.length, true);
        entry.setUint8(20, files[whole] ? KIND.file : KIND.folder);
        new Uint8Array(entry.buffer, 24).set(text);
        const piece = new Uint8Array(entry.buffer).subarray(0, length - used);
        bytes(buffer + used, piece.length).set(piece);
        used += piece.length;
        if (used === length) break;
      }
      view().setUint32(to, used, true);
      return 0;
    },
    fd_close(fd) { return open.delete(fd) ? 0 : ERRNO.badf; },
  };

  // Every other call of the system fails, as on a machine that does not have it.
  const system = {};
  for (const { name } of WebAssembly.Module.imports(module)) system[name] = calls[name] ?? (() => ERRNO.nosys);
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: system });
  memory = instance.exports.memory;
  try {
    instance.exports._start();
    return 0;
  } catch (error) {
    if (error instanceof Exit) return error.code;
    throw error;
  }
}
