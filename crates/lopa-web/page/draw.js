"use strict";
// Pictures: each function draws its data into an SVG element.

const METHODS = [
  { name: "lopa-gt", kind: "gt", title: "LoPA-GT", about: "shared layer, personal heads, gradient tracking" },
  { name: "lopa-lg", kind: "lg", title: "LoPA-LG", about: "the same with local gradients, half the bytes" },
  { name: "dgd", kind: "dgd", title: "DGD", about: "one model for all nodes" },
];

const number = (value) => {
  if (value === undefined || value === null) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e4 || size < 1e-3 ? value.toExponential(1).replace("e+", "e") : String(+value.toPrecision(3));
};
const amount = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB"];
  const at = Math.min(3, Math.max(0, Math.floor(Math.log2(Math.max(bytes, 1)) / 10)));
  return `${+(bytes / 1024 ** at).toPrecision(3)} ${units[at]}`;
};

// An SVG element with attributes and children.
function shape(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// 0 where nodes agree to 1e-3, 1 where ‖x_i − x̄‖² is 100 or more.
const apart = (spread) => Math.min(1, Math.max(0, (Math.log10(Math.max(spread, 1e-12)) + 3) / 5));
const colour = (far) => `color-mix(in oklab, var(--far) ${Math.round(100 * far)}%, var(--near))`;

function drawGraph(svg, world, spread, lossy) {
  const { nodes, edges } = world;
  const hub = edges.length === nodes - 1 && edges.every(([i]) => i === 0) && nodes > 2;
  const place = (i) => {
    if (hub && i === 0) return [100, 100];
    const turn = (2 * Math.PI * (hub ? i - 1 : i)) / (hub ? nodes - 1 : nodes) - Math.PI / 2;
    return [100 + 72 * Math.cos(turn), 100 + 72 * Math.sin(turn)];
  };
  svg.setAttribute("viewBox", "0 0 200 200");
  const links = edges.map(([i, j]) => {
    const [a, b] = [place(i), place(j)];
    return shape("line", { class: `edge${lossy ? " lossy" : ""}`, x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
  });
  const discs = [...Array(nodes).keys()].map((i) => {
    const far = apart(spread[i] ?? 0);
    const [cx, cy] = place(i);
    return shape("g", {},
      shape("title", {}, `node ${i}: ${number(spread[i])} from the mean`),
      shape("circle", { cx, cy, r: 9 + 16 * far, fill: colour(far), "fill-opacity": 0.25 }),
      shape("circle", { cx, cy, r: 9, fill: colour(far) }),
      shape("text", { x: cx, y: cy + 4, "text-anchor": "middle", style: "fill: var(--ground); font-weight: 600" }, String(i)));
  });
  svg.replaceChildren(...links, ...discs);
}

function drawLegend(svg) {
  const circles = [0, 0.25, 0.5, 0.75, 1].map((far, i) =>
    shape("circle", { cx: 14 + 30 * i, cy: 9, r: 3 + 6 * far, fill: colour(far) }));
  svg.replaceChildren(...circles);
}

function drawDigits(svg, counts) {
  const most = Math.max(...counts.flat(), 1);
  const [nodes, classes] = [counts.length, counts[0]?.length ?? 0];
  svg.setAttribute("viewBox", `0 0 ${70 + classes * 22} ${20 + nodes * 16}`);
  svg.setAttribute("aria-label", counts.map((row, i) => `node ${i} has the digits ${row.flatMap((n, k) => (n ? [k] : [])).join(" ")}`).join("; "));
  const columns = [...Array(classes).keys()].map((k) => shape("text", { x: 70 + k * 22 + 11, y: 12, "text-anchor": "middle" }, String(k)));
  const rows = counts.flatMap((row, i) => [
    shape("text", { x: 62, y: 20 + i * 16 + 12, "text-anchor": "end" }, `node ${i}`),
    ...row.map((n, k) => shape("rect", { x: 70 + k * 22 + 1, y: 20 + i * 16 + 1, width: 20, height: 14, rx: 2, style: `fill: color-mix(in oklab, var(--accent) ${Math.round((90 * n) / most)}%, var(--raised))` },
      shape("title", {}, `node ${i}: ${n} images of ${k}`))),
  ]);
  svg.replaceChildren(...columns, ...rows);
}

// Ticks at 1, 2 or 5 times a power of ten; on a logarithmic axis at powers of ten.
function ticks(low, high, log) {
  if (log) {
    const [from, to] = [Math.ceil(low - 1e-9), Math.floor(high + 1e-9)];
    const every = Math.max(1, Math.ceil((to - from) / 5));
    return [...Array(Math.max(0, to - from) + 1).keys()].map((i) => from + i).filter((e) => e % every === 0);
  }
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(at * step);
  return found;
}

// series: [{ kind, title, points: [[iteration, value], …] }]; a logarithmic axis leaves out what is zero up to rounding.
function drawChart(svg, series, last, log, about) {
  const [width, height, left, bottom] = [460, 250, 48, 26];
  const scale = (value) => (log ? Math.log10(value) : value);
  const shown = ([, value]) => Number.isFinite(value) && (!log || value > 1e-12);
  const values = series.flatMap(({ points }) => points.filter(shown).map(([, value]) => scale(value)));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", `${about}: ${series.map(({ title, points }) => `${title} ${number(points.at(-1)?.[1])}`).join(", ")}`);
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const x = (k) => left + ((width - left - 10) * k) / last;
  const y = (value) => height - bottom - ((height - bottom - 12) * (value - low)) / (high - low);
  const parts = ticks(low, high, log).flatMap((at) => [
    shape("line", { class: "grid", x1: left, x2: width - 10, y1: y(at), y2: y(at) }),
    shape("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, log ? `1e${at}` : number(+at.toPrecision(6))),
  ]);
  for (const at of ticks(0, last, false)) parts.push(shape("text", { x: x(at), y: height - 8, "text-anchor": at > 0.95 * last ? "end" : "middle" }, number(at)));
  for (const { kind, points } of series) {
    const drawn = points.filter(shown);
    const path = drawn.map(([k, value], i) => `${i ? "L" : "M"}${x(k).toFixed(1)} ${y(scale(value)).toFixed(1)}`).join("");
    parts.push(shape("path", { class: kind, d: path }));
    const end = drawn.at(-1);
    if (end) parts.push(shape("circle", { cx: x(end[0]), cy: y(scale(end[1])), r: 3, style: `fill: var(--${kind})` }));
  }
  svg.replaceChildren(...parts);
}
