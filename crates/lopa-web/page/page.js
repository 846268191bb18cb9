// The page: settings, workers, and what they send.

const $ = (selector) => document.querySelector(selector);

const AUTOMATIC = -4; // on the scale of step sizes: the methods find their own

// Every setting: its default, how it is chosen, and how it is said.
const SETTINGS = {
  graph: { label: "Graph", of: [["path", "path"], ["ring", "ring"], ["random", "random"], ["star", "star"], ["complete", "everyone with everyone"]], value: "ring" },
  nodes: { label: "Nodes", from: 3, to: 16, value: 8, say: (n) => n },
  classes: { label: "Digits per node", from: 1, to: 10, value: 7, say: (n) => (n === 10 ? "all ten: all alike" : `${n} of 10`) },
  alpha: { label: "Step size α", from: AUTOMATIC, to: 8, value: AUTOMATIC, say: (e) => (e === AUTOMATIC ? "automatic" : `${number(step(e))}, DGD a tenth`) },
  drop: { label: "Lost messages", from: 0, to: 90, by: 10, value: 0, say: (n) => `${n} %` },
  compress: { label: "Compression", of: [["none", "none"], ["bf16", "16 bits per number"], ["quantise", "4 bits per number"], ["top-25", "a quarter of the entries"], ["top-5", "a twentieth of the entries"]], value: "none" },
  iterations: { label: "Iterations", from: 100, to: 1000, by: 100, value: 300, say: (n) => n },
  seed: { label: "Seed", from: 1, to: 20, value: 1, say: (n) => n },
};
const MEASURES = [["own_test_accuracy", "accuracy on a node’s own digits"], ["test_accuracy", "accuracy on all digits"], ["loss", "training loss"]];
const PRESETS = @presets.json@;

// Two or three steps per power of ten: 0.1, 0.2, 0.5, 1, 2, 5, …
function step(e) { return +(10 ** Math.floor(e / 3) * [1, 2, 5][((e % 3) + 3) % 3]).toPrecision(1); }

// The step size of a method, unless it finds its own. DGD's model has no personal part, and needs smaller steps.
function givenStep(name) {
  if (settings.alpha === AUTOMATIC) return undefined;
  return name === "dgd" ? +(step(settings.alpha) / 10).toPrecision(3) : step(settings.alpha);
}

const defaults = () => Object.fromEntries(Object.entries(SETTINGS).map(([key, { value }]) => [key, value]));
let settings = defaults();

// The experiment file of the settings, with all methods or with one.
function experiment(only) {
  const { graph, nodes, classes, alpha, drop, compress, iterations, seed } = settings;
  const graphs = { random: '{ name = "erdos-renyi", p = 0.4 }' };
  const compressors = { "top-25": '{ name = "top-k", share = 0.25 }', "top-5": '{ name = "top-k", share = 0.05 }', quantise: '{ name = "quantise", bits = 4 }', bf16: '"bf16"' };
  const messages = [drop > 0 && `drop = ${drop / 100}`, compress !== "none" && `compress = ${compressors[compress]}`].filter(Boolean);
  const steps = (name) => {
    if (alpha === AUTOMATIC) return "";
    return `, alpha = ${givenStep(name)}${name === "dgd" ? "" : ", beta = 0.3, lambda = 0.3"}`;
  };
  const methods = METHODS.filter(({ name }) => !only || name === only).map(({ name }) => `  { name = "${name}"${steps(name)} },\n`);
  return [
    'name = "try"',
    'problem = { name = "representation", hidden = [10], ridge = 0.01 }',
    'data = "digits"',
    `partition = { name = "classes", per_node = ${classes} }`,
    `network = { nodes = ${nodes}, graph = ${graphs[graph] ?? `"${graph}"`} }`,
    ...(messages.length ? [`messages = { ${messages.join(", ")} }`] : []),
    `run = { iterations = ${iterations}, batch = 16, evaluations = 20, exact = "never", precision = "f32", seeds = [${seed}] }`,
    `algorithm = [\n${methods.join("")}]`,
  ].join("\n") + "\n";
}

// ---- settings and the address: #graph=ring&drop=20

function readAddress() {
  for (const part of location.hash.slice(1).split("&")) {
    const [key, text] = part.split("=");
    const spec = SETTINGS[key];
    if (!spec) continue;
    if (spec.of) { if (spec.of.some(([value]) => value === text)) settings[key] = text; continue; }
    const value = Math.round(Number(text));
    if (Number.isFinite(value)) settings[key] = Math.min(spec.to, Math.max(spec.from, value));
  }
}
function writeAddress() {
  const changed = Object.entries(settings).filter(([key, value]) => value !== SETTINGS[key].value);
  history.replaceState(null, "", changed.length ? `#${changed.map((pair) => pair.join("=")).join("&")}` : location.pathname);
}

function makeControls() {
  for (const [key, spec] of Object.entries(SETTINGS)) {
    const label = document.createElement("label");
    const control = document.createElement(spec.of ? "select" : "input");
    control.id = label.htmlFor = `set-${key}`; // the label also holds an output, which it would name otherwise
    label.append(spec.label);
    if (spec.of) control.append(...spec.of.map(([value, text]) => new Option(text, value)));
    else {
      Object.assign(control, { type: "range", min: spec.from, max: spec.to, step: spec.by ?? 1 });
      label.append(document.createElement("output"));
    }
    label.append(control);
    control.addEventListener("input", () => {
      settings[key] = spec.of ? control.value : Number(control.value);
      choose(null);
      changed();
    });
    $("#controls").append(label);
  }
  $("#controls").addEventListener("submit", (event) => event.preventDefault());
}
function showControls() {
  for (const [key, spec] of Object.entries(SETTINGS)) {
    const control = $(`#set-${key}`);
    control.value = settings[key];
    if (!spec.of) {
      control.parentElement.querySelector("output").value = spec.say(settings[key]);
      control.setAttribute("aria-valuetext", spec.say(settings[key]));
    }
  }
  $("#file").textContent = experiment();
}

// ---- things to see

function makePresets() {
  $("#presets .buttons").append(...PRESETS.map((preset) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: preset.title });
    button.addEventListener("click", () => {
      settings = { ...defaults(), ...preset.settings };
      $("#measure").value = preset.measure;
      choose(preset);
      changed();
    });
    return button;
  }));
}
function choose(preset) {
  $("#lesson").textContent = preset?.lesson ?? "";
  [...$("#presets .buttons").children].forEach((button, i) => button.setAttribute("aria-pressed", PRESETS[i] === preset));
}

// ---- runs: a worker per method

let program; // the compiled program
let workers = [];
let runs = {}; // by method: { rows, spread, result }
let world = null;
let timer;

const workerAddress = URL.createObjectURL(new Blob([$("#worker").textContent], { type: "text/javascript" }));

// Runs the program once; `line` receives its output. The promise has the exit code and the errors.
function execute(args, files, line) {
  const worker = new Worker(workerAddress);
  const done = new Promise((resolve) => {
    worker.onmessage = ({ data }) => {
      if (data.line !== undefined) return line(data.line);
      worker.terminate();
      resolve(data);
    };
    worker.onerror = (event) => resolve({ code: 101, errors: event.message });
  });
  worker.postMessage({ module: program, args, files });
  return { worker, done };
}

const stop = () => { workers.forEach((worker) => worker.terminate()); workers = []; };

function status(text, bad) {
  $("#status").textContent = text;
  $("#status").classList.toggle("bad", Boolean(bad));
}

function changed() {
  showControls();
  writeAddress();
  clearTimeout(timer);
  timer = setTimeout(start, 150);
}

async function start() {
  if (!program) return;
  stop();
  [runs, world] = [Object.fromEntries(METHODS.map(({ name }) => [name, { rows: [], spread: [] }])), null];
  $("#digest").value = "…";
  document.body.dataset.state = "running";
  status("running");
  const mine = runs; // lines of runs that were stopped are dropped
  const ends = METHODS.map(({ name }) => {
    const text = new TextEncoder().encode(experiment(name));
    const { worker, done } = execute(["run", "/try.toml"], { "try.toml": text }, (line) => line && mine === runs && take(name, JSON.parse(line)));
    workers.push(worker);
    return done;
  });
  for (const { code, errors } of await Promise.all(ends)) {
    if (mine !== runs) return;
    if (code !== 0) {
      document.body.dataset.state = "failed";
      return status(errors, true);
    }
  }
  if (mine !== runs) return;
  const results = METHODS.map(({ name }) => runs[name].result);
  let digest = "";
  await execute(["digest", "/results.json"], { "results.json": new TextEncoder().encode(JSON.stringify(results)) }, (line) => { digest ||= line; }).done;
  if (mine !== runs) return;
  $("#digest").value = digest;
  status(`done: ${settings.iterations} iterations of each method`);
  document.body.dataset.state = "done";
}

function take(name, event) {
  const run = runs[name];
  if (event.event === "world" && !world) {
    world = event;
    drawDigits($("#digits svg"), event.class_counts);
  } else if (event.event === "row") {
    run.rows.push(event.row);
    run.spread = event.spread;
  } else if (event.event === "end") run.result = event.result;
  draw();
}

let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const measure = $("#measure").value;
    const series = (key) => METHODS.map(({ name, kind, title }) => ({ kind, title, points: runs[name].rows.map((row) => [row.iteration, row[key]]) }));
    drawChart($("#chart-0"), series(measure), settings.iterations, false, $("#measure").selectedOptions[0].text);
    drawChart($("#chart-1"), series("consensus"), settings.iterations, true, "disagreement");
    for (const { name, kind } of METHODS) {
      const { rows, spread, result } = runs[name];
      const row = rows.at(-1) ?? {};
      const card = $(`#method-${kind}`);
      if (world) drawGraph(card.querySelector(".network"), world, spread, settings.drop > 0);
      const said = [number(row.own_test_accuracy), number(row.consensus), row.bytes === undefined ? "–" : amount(row.bytes), number(row.step_alpha ?? givenStep(name))];
      card.querySelectorAll("dd").forEach((cell, i) => { cell.textContent = said[i]; });
      const diverged = result?.stop === "diverged";
      card.querySelector(".diverged").textContent = diverged ? "diverged: the step is too large" : "";
      const cells = [row.iteration ?? "–", ...["loss", "own_test_accuracy", "test_accuracy", "consensus"].map((key) => number(row[key])), said[2]];
      card.row.replaceChildren(...[card.dataset.title, ...cells].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    }
    if (document.body.dataset.state === "running") {
      const least = Math.min(...METHODS.map(({ name }) => runs[name].rows.at(-1)?.iteration ?? 0));
      status(`iteration ${least} of ${settings.iterations}`);
    }
  });
}

function makeMethods() {
  for (const { kind, title, about } of METHODS) {
    const card = document.createElement("div");
    Object.assign(card, { className: "method", id: `method-${kind}` });
    card.dataset.title = title;
    card.innerHTML = `<h3><svg viewBox="0 0 26 8" width="26" height="8" style="width:26px" aria-hidden="true"><line class="${kind}" x1="0" x2="26" y1="4" y2="4" stroke-width="3"/></svg>${title}</h3><p>${about}</p>
<svg class="network" role="img" aria-label="The network of ${title}" viewBox="0 0 200 200"></svg>
<dl><dt>accuracy, own digits</dt><dd>–</dd><dt>disagreement</dt><dd>–</dd><dt>sent</dt><dd>–</dd><dt>step size α</dt><dd>–</dd></dl><p class="diverged"></p>`;
    card.row = document.createElement("tr");
    $("#table tbody").append(card.row);
    $("#methods").append(card);
  }
}

// ---- files

function save(name, text, type) {
  const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// The files of a run folder that a report needs; models and checkpoints stay where they are.
const NEEDED = ["manifest.json", "resolved.toml", "metrics.jsonl", "results.json", "claims.json"];

async function openFolders(found) {
  const tell = (text, bad) => {
    $("#opened").textContent = text;
    $("#opened").classList.toggle("bad", Boolean(bad));
  };
  const files = {};
  for (const [path, file] of found) if (NEEDED.includes(path.split("/").at(-1))) files[path] = new Uint8Array(await file.arrayBuffer());
  const folders = Object.keys(files).filter((path) => path.endsWith("manifest.json")).map((path) => path.slice(0, -"/manifest.json".length)).sort();
  if (!folders.length) return tell("There is no run folder in it: a run folder has a file manifest.json. `lopa run` writes it below runs/.", true);
  tell("The report is being made.");
  const lines = [];
  const { code, errors } = await execute(["report", ...folders.map((folder) => `/${folder}`)], files, (line) => lines.push(line)).done;
  if (code !== 0) return tell(errors, true);
  const html = lines.join("\n");
  const frame = $("#report");
  URL.revokeObjectURL(frame.src);
  frame.src = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  frame.hidden = $("#kept").hidden = false;
  $("#save-report").onclick = () => save("report.html", html, "text/html");
  tell(folders.length === 1 ? `The report of ${folders[0]}:` : `The report of ${folders.length} run folders:`);
  frame.scrollIntoView({ block: "start" });
}

// All files below a dropped entry, as [path, file].
async function below(entry, path = "") {
  const whole = path + entry.name;
  if (entry.isFile) return [[whole, await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader gives up to a hundred entries at a time
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const one of some) found.push(...await below(one, `${whole}/`));
  }
}

function makeDrop() {
  const zone = $("#drop");
  $("#folder").addEventListener("change", ({ target }) => openFolders([...target.files].map((file) => [file.webkitRelativePath || file.name, file])));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
    });
  }
  document.addEventListener("drop", async ({ dataTransfer }) => {
    const entries = [...dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    openFolders((await Promise.all(entries.map((entry) => below(entry)))).flat());
  });
}

// ---- begin

async function unpack() {
  const packed = Uint8Array.from(atob($("#program").textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

readAddress();
makeControls();
makeMethods();
makePresets();
makeDrop();
drawLegend($(".legend svg"));
$("#measure").append(...MEASURES.map(([value, text]) => new Option(text, value)));
$("#measure").addEventListener("input", draw);
$("#go").addEventListener("click", start);
$("#halt").addEventListener("click", () => {
  if (document.body.dataset.state !== "running") return;
  stop();
  runs = { ...runs };
  document.body.dataset.state = "stopped";
  status("stopped");
});
if (location.hash === "") choose(PRESETS[0]);
$("#save").addEventListener("click", () => save("try.toml", experiment(), "text/plain"));
showControls();
unpack().then((module) => {
  program = module;
  start();
}, (error) => status(`This browser cannot run WebAssembly here: ${error.message}`, true));
