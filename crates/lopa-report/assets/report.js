"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const redraws = [];

  // The state of the page is kept in its address, after the #: the place, then what differs from the
  // start. A bookmark or a reload brings all of it back.
  const kept = new URLSearchParams(location.hash.slice(1));
  const keep = (key, value) => {
    if (value === null || value === "") kept.delete(key);
    else kept.set(key, value);
    remember();
  };
  const remember = () => {
    const pairs = [...kept].map(([key, value]) => (value === "" ? key : `${key}=${encodeURIComponent(value)}`));
    history.replaceState(null, "", `#${pairs.join("&")}`);
  };
  /** The element that the address names. */
  const place = () => [...kept].filter(([, value]) => value === "").map(([key]) => document.getElementById(key)).find((one) => one);
  const goTo = (id) => {
    const others = [...kept].filter(([, value]) => value !== "");
    [...kept.keys()].forEach((key) => kept.delete(key));
    kept.set(id, "");
    others.forEach(([key, value]) => kept.set(key, value));
    remember();
    document.getElementById(id)?.scrollIntoView();
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    goTo(link.getAttribute("href").slice(1));
  });
  addEventListener("hashchange", () => location.reload());

  /** An element with attributes and children; strings become text, never markup. */
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };

  const number = (value) => {
    if (value == null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replaceAll("-", "−");
    if (Number.isInteger(value)) return value.toLocaleString("en").replaceAll(",", "\u2009");
    return value.toPrecision(4).replaceAll("-", "−");
  };

  /** A short number for an axis. */
  const axisNumber = (value) => {
    if (value == null) return "";
    const size = Math.abs(value);
    const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const unit = size >= 1e4 && size < 1e15 && units.find(([unit]) => size >= unit);
    if (unit) return +(value / unit[0]).toPrecision(4) + unit[1];
    if (size && (size < 1e-3 || size >= 1e15)) return value.toExponential().replaceAll("-", "−").replace("e", "·10^").replace("1·", "").replace("+", "");
    return String(+value.toPrecision(6)).replaceAll("-", "−");
  };

  const raised = (text) =>
    text.replace(/\^(−?\d+)/, (_, power) => [...power].map((c) => (c === "−" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join(""));

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** An algorithm's points as columns x, mean, low, high, sd: those the axes can show, x increasing. */
  const columns = (algorithm, view, y, logY) => {
    const none = { mean: [], sd: [], low: [], high: [] };
    const xs = (algorithm.points[view.x] ?? none).mean;
    const { mean, sd, low, high } = algorithm.points[y] ?? none;
    const out = { x: [], mean: [], low: [], high: [], sd: [], free: false };
    const there = xs.map((x, k) => k).filter((k) => xs[k] != null && mean[k] != null);
    out.free = there.length > 1 && there.every((k) => xs[k] === xs[there[0]]);
    const kept = there.filter(
      (k, n) => (!view.logX || xs[k] > 0 || out.free) && (!logY || mean[k] > 0) &&
        (there[n + 1] === undefined || xs[there[n + 1]] !== xs[k]),
    );
    for (const k of kept) {
      const band = { range: [low[k], high[k]], sd: [mean[k] - sd[k], mean[k] + sd[k]], none: [null, null] }[view.band];
      out.x.push(xs[k]);
      out.mean.push(mean[k]);
      out.low.push(logY && band[0] != null && band[0] <= 0 ? mean[k] : band[0]);
      out.high.push(band[1]);
      out.sd.push(sd[k]);
    }
    return out;
  };

  /** A seed that diverged, as columns x and y, up to its last value that the axes can show. */
  const trail = (lost, view, y, logY) => {
    if (!lost[view.x] || !lost[y]) return { x: [], y: [] };
    const ends = lost[view.x].findIndex((x, k) => x == null || lost[y][k] == null || (logY && lost[y][k] <= 0));
    const whole = (values) => values.slice(0, ends < 0 ? undefined : ends);
    const [xs, ys] = [whole(lost[view.x]), whole(lost[y])];
    const from = view.logX ? xs.findIndex((x) => x > 0) : 0;
    return { x: from < 0 ? [] : xs.slice(from), y: from < 0 ? [] : ys.slice(from) };
  };

  /** A power of ten, correctly rounded; `10 ** k` is not. */
  const power = (k) => Number(`1e${k}`);

  /** The range of a logarithmic axis: whole powers of ten, for any data. */
  const decades = (_, min, max) => {
    if (!(min > 0) || !(max >= min)) return [1, 10];
    const low = Math.floor(Math.log10(min));
    return [power(low), power(Math.max(Math.ceil(Math.log10(max)), low + 1))];
  };

  /** The ticks of a logarithmic axis: about eight powers of ten; also 2 and 5 where there are few powers. */
  const logTicks = (_, __, min, max) => {
    const [low, high] = [Math.round(Math.log10(min)), Math.round(Math.log10(max))];
    const step = Math.ceil((high - low) / 8);
    const digits = high - low > 2 ? [1] : [1, 2, 5];
    const all = [];
    for (let k = low; k <= high; k += step) all.push(...digits.map((digit) => digit * power(k)));
    return all.filter((tick) => tick <= max);
  };

  /** Turns algorithms without this cost into horizontal lines across the chart. */
  const flatten = (curves) => {
    const moving = curves.filter((curve) => !curve.free).flatMap((curve) => curve.x);
    const ends = moving.length ? [Math.min(...moving), Math.max(...moving)] : [1, 10];
    for (const curve of curves.filter((curve) => curve.free && curve.x.length)) {
      for (const key of ["mean", "low", "high", "sd"]) curve[key] = [curve[key].at(-1), curve[key].at(-1)];
      curve.x = ends;
    }
  };

  /** Draws the markers of the curves: a few on each, beginning at different points. */
  const mark = (plot, curves, shown) => {
    const { ctx, bbox } = plot;
    const inside = (at, from, size) => at >= from - 1 && at <= from + size + 1;
    ctx.save();
    curves.forEach((curve, n) => {
      const shape = new Path2D(shown[n].marker);
      const step = Math.max(1, Math.ceil(curve.x.length / 6));
      ctx.fillStyle = shown[n].colour;
      for (let k = n % step; k < curve.x.length; k += step) {
        const x = plot.valToPos(curve.x[k], "x", true);
        const y = plot.valToPos(curve.mean[k], "y", true);
        if (!inside(x, bbox.left, bbox.width) || !inside(y, bbox.top, bbox.height)) continue;
        ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, x, y);
        ctx.fill(shape);
      }
    });
    ctx.restore();
  };

  class Panel {
    constructor(run, view, y, keys) {
      this.run = run;
      this.view = view;
      this.keys = keys;
      this.y = y;
      this.logY = kept.has(keys.log) ? kept.get(keys.log) === "yes" : this.quantity(y).log;
      this.zoom = kept.get(keys.zoom)?.split("~").map(Number);
      if (!(this.zoom?.length === 2 && this.zoom[0] < this.zoom[1])) this.zoom = null;
      const measures = run.quantities.filter((quantity) => !quantity.cost);
      const select = make("select", { "aria-label": "Vertical axis", class: "y", onchange: () => {
        this.y = select.value;
        this.logY = log.checked = this.quantity(this.y).log;
        keep(keys.y, this.y);
        keep(keys.log, null);
        this.draw();
      } }, ...measures.map(({ name, title }) => make("option", { value: name }, title)));
      select.value = y;
      const log = make("input", { type: "checkbox", class: "log-y", onchange: () => {
        this.logY = log.checked;
        keep(keys.log, this.logY === this.quantity(this.y).log ? null : this.logY ? "yes" : "no");
        this.draw();
      } });
      log.checked = this.logY;
      this.chart = make("div", {
        class: "chart", tabindex: "0", role: "group", "aria-label": "Chart; use the arrow keys to read values",
        onkeydown: (event) => this.key(event), onblur: () => this.hide(),
      });
      this.tip = make("div", { class: "tip", role: "status", hidden: "" });
      this.element = make("div", { class: "panel" },
        make("div", { class: "bar" }, select, make("label", {}, log, "log")), this.chart);
      new ResizeObserver(() => this.fit()).observe(this.chart);
    }

    quantity(name) {
      return this.run.quantities.find((quantity) => quantity.name === name);
    }

    draw() {
      const { view, chart } = this;
      this.plot?.destroy();
      this.shown = this.run.algorithms.filter((algorithm, n) => !view.off.has(n) && !algorithm.filtered);
      this.curves = this.shown.map((algorithm) => columns(algorithm, view, this.y, this.logY));
      flatten(this.curves);
      this.lost = this.shown.flatMap((algorithm) =>
        algorithm.lost.map((lost) => ({ colour: algorithm.colour, ...trail(lost, view, this.y, this.logY) })));
      // What diverged must not set the axis; alone, it is shown up to ten times where it began.
      const sound = this.curves.some((curve) => curve.x.length);
      if (!sound) {
        for (const lost of this.lost) {
          const out = lost.y.findIndex((value) => value > 10 * Math.abs(lost.y[0]));
          if (out >= 0) [lost.x, lost.y] = [lost.x.slice(0, out), lost.y.slice(0, out)];
        }
      }
      const tables = [...this.curves.map((curve) => [curve.x, curve.mean, curve.low, curve.high]),
        ...this.lost.map((lost) => [lost.x, lost.y])];
      const joined = tables.length ? uPlot.join(tables) : [[]];
      const series = [{}];
      const bands = [];
      this.shown.forEach(({ label, colour, dash }, n) => {
        series.push({ label, stroke: colour, width: 2, dash: dash.map((d) => d * 1.1), spanGaps: true, points: { show: false } });
        for (const end of ["low", "high"]) series.push({ label: `${label} ${end}`, stroke: "transparent", width: 0, spanGaps: true, points: { show: false } });
        bands.push({ series: [3 * n + 3, 3 * n + 2], fill: colour + "2b" });
      });
      for (const { colour } of this.lost) {
        series.push({ label: "diverged", stroke: colour, width: 1, dash: [2, 4], auto: !sound, spanGaps: true, points: { show: false } });
      }
      // A logarithmic axis needs at least one value.
      const some = sound || this.lost.some((lost) => lost.x.length);
      const ink = colour("--quiet");
      const grid = { stroke: colour("--line"), width: 1 };
      const axis = (title, size, log) => ({
        ...(log && some ? { splits: logTicks, filter: (_, splits) => splits } : {}),
        label: title, labelSize: 26, labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif",
        stroke: ink, grid, ticks: { ...grid, size: 5 }, size,
        values: (_, splits) => {
          // Over many powers of ten, powers are easier to read than units.
          const powers = log && splits.at(-1) / splits[0] >= 1e6;
          const text = (value) => (powers ? `10^${Math.round(Math.log10(value))}`.replace("-", "−") : axisNumber(value));
          return splits.map((value) => raised(text(value)));
        },
      });
      const scale = (log) => (log && some ? { time: false, distr: 3, range: decades } : { time: false, distr: 1 });
      this.plot = new uPlot({
        width: Math.max(chart.clientWidth, 200), height: 340, legend: { show: false },
        scales: { x: scale(view.logX), y: scale(this.logY) },
        axes: [axis(this.quantity(view.x).title, 52, view.logX), axis(this.quantity(this.y).title, 62, this.logY)],
        series, bands,
        padding: [null, 28, null, null], // half a tick label, in wide fonts too
        cursor: { points: { show: false }, y: false },
        hooks: {
          setCursor: [(plot) => this.hover(plot)],
          draw: [(plot) => mark(plot, this.curves, this.shown), (plot) => this.cross(plot)],
          setSelect: [(plot) => this.zoomTo(plot.select)],
        },
      }, joined, chart);
      if (this.zoom) this.plot.setScale("x", { min: this.zoom[0], max: this.zoom[1] });
      this.plot.over.addEventListener("dblclick", () => this.zoomTo(null));
      chart.append(this.tip);
      this.hide();
    }

    /** Marks where the seeds that diverged leave the picture. */
    cross({ ctx, bbox, valToPos }) {
      const arm = 4 * devicePixelRatio;
      for (const { x, y, colour } of this.lost) {
        const points = x.map((at, k) => [valToPos(at, "x", true), valToPos(y[k], "y", true)]);
        const out = points.findIndex(([, top]) => !(top >= bbox.top && top <= bbox.top + bbox.height));
        let [left, top] = points.at(out < 0 ? -1 : Math.max(out - 1, 0)) ?? [];
        if (out > 0) {
          const [right, beyond] = points[out];
          const edge = beyond < bbox.top ? bbox.top : bbox.top + bbox.height;
          if (Number.isFinite(beyond)) left += ((right - left) * (edge - top)) / (beyond - top);
          top = edge;
        }
        if (left === undefined || out === 0 || left < bbox.left || left > bbox.left + bbox.width) continue;
        ctx.save();
        ctx.strokeStyle = colour;
        ctx.setLineDash([]);
        ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.beginPath();
        for (const rise of [-arm, arm]) {
          ctx.moveTo(left - arm, top - rise);
          ctx.lineTo(left + arm, top + rise);
        }
        ctx.stroke();
        ctx.restore();
      }
    }

    fit() {
      if (this.plot && this.chart.clientWidth) this.plot.setSize({ width: this.chart.clientWidth, height: 340 });
    }

    hide() {
      this.tip.hidden = true;
    }

    /** Remembers the part that is shown. */
    zoomTo(part) {
      const ends = part && part.width > 0 && [part.left, part.left + part.width];
      this.zoom = ends ? ends.map((at) => this.plot.posToVal(at, "x")) : null;
      keep(this.keys.zoom, this.zoom && this.zoom.map((end) => end.toPrecision(6)).join("~"));
    }

    /** Shows the values nearest the cursor. */
    hover(plot) {
      const { left, top } = plot.cursor;
      if (left == null || left < 0) return this.hide();
      const lines = [];
      let at = null;
      this.curves.forEach((curve, n) => {
        const away = (k) => Math.abs(plot.valToPos(curve.x[k], "x") - left);
        let best = -1;
        for (let k = 0; k < curve.x.length; k++) if (best < 0 || away(k) < away(best)) best = k;
        if (best < 0) return;
        if (curve.free) best = 1;
        else if (at === null || away(best) < Math.abs(plot.valToPos(at, "x") - left)) at = curve.x[best];
        lines.push({ algorithm: this.shown[n], mean: curve.mean[best], sd: curve.sd[best] });
      });
      if (!lines.length) return this.hide();
      lines.sort((a, b) => b.mean - a.mean);
      const line = ({ algorithm, mean, sd }) => make("div", {},
        make("i", { style: `background:${algorithm.colour}` }), algorithm.name,
        make("span", {}, number(mean) + (sd ? ` ± ${number(+sd.toPrecision(2))}` : "")));
      const head = `${this.quantity(this.view.x).title}: ${number(at)}`;
      this.tip.replaceChildren(make("b", {}, head), ...lines.map(line));
      this.tip.hidden = false;
      const area = plot.over.getBoundingClientRect();
      const box = this.chart.getBoundingClientRect();
      const x = area.left - box.left + left;
      const flip = x + this.tip.offsetWidth + 18 > box.width;
      this.tip.style.left = `${flip ? Math.max(0, x - this.tip.offsetWidth - 14) : x + 14}px`;
      this.tip.style.top = `${Math.max(0, Math.min((top < 0 ? 0 : top), area.height - this.tip.offsetHeight))}px`;
    }

    /** Where arrow keys stop: at points that the eye can tell apart. */
    stops() {
      const stops = [];
      for (const x of this.plot.data[0]) {
        const at = this.plot.valToPos(x, "x");
        if (at < -1 || at > this.plot.over.clientWidth + 1) continue;
        if (!stops.length || at - stops.at(-1) >= 8) stops.push(at);
      }
      return stops;
    }

    /** Arrow keys move from point to point. */
    key(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") return this.hide();
      const stops = this.stops();
      if (!step || !stops.length) return;
      event.preventDefault();
      const fresh = this.tip.hidden || this.at === undefined;
      this.at = fresh ? (step > 0 ? 0 : stops.length - 1) : this.at + step;
      this.at = Math.min(Math.max(this.at, 0), stops.length - 1);
      this.plot.setCursor({ left: stops[this.at], top: 0 });
    }
  }

  const sample = ({ colour, dash, marker }) => {
    const namespace = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(namespace, "svg");
    const line = document.createElementNS(namespace, "line");
    const set = (element, attributes) => Object.entries(attributes).forEach(([k, v]) => element.setAttribute(k, v));
    const shape = document.createElementNS(namespace, "path");
    set(svg, { width: 34, height: 12, "aria-hidden": "true" });
    set(line, { x1: 0, x2: 34, y1: 6, y2: 6, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") });
    set(shape, { d: marker, transform: "translate(17 6)", fill: colour });
    svg.append(line, shape);
    return svg;
  };

  /** Replaces the static curves of a run by controls and charts. */
  const show = (place, run) => {
    const key = (name) => `${run.key}.${name}`;
    const choice = (name, values, usual) => (values.includes(kept.get(key(name))) ? kept.get(key(name)) : usual);
    const [costs, measures] = [true, false].map((cost) =>
      run.quantities.filter((quantity) => quantity.cost === cost).map(({ name }) => name));
    const view = {
      x: choice("x", costs, run.x), logX: kept.get(key("logx")) === "yes",
      band: choice("band", ["range", "sd", "none"], run.band ?? "range"),
      off: new Set((kept.get(key("off")) ?? "").split("~").filter((n) => n !== "").map(Number)),
    };
    const panels = run.y.map((y, n) => {
      const keys = { y: key(`y${n}`), log: key(`log${n}`), zoom: key(`zoom${n}`) };
      return new Panel(run, view, choice(`y${n}`, measures, y), keys);
    });
    const draw = () => {
      panels.forEach((panel) => panel.draw());
      buttons.forEach((button, n) => { button.hidden = Boolean(run.algorithms[n].filtered); });
      const free = panels.some((panel) => panel.curves.some((curve) => curve.free));
      note.textContent =
        { range: "Lines: mean over seeds. Bands: minimum to maximum. ",
          sd: "Lines: mean over seeds. Bands: one standard deviation on either side. ",
          none: "Lines: mean over seeds. " }[view.band] +
        (free ? "Horizontal lines: final values of algorithms without this cost. " : "") +
        (panels.some((panel) => panel.lost.length) ? "Thin dotted lines: seeds that diverged; × is where they leave the picture. " : "") +
        "Drag to zoom, double-click to reset.";
    };
    const note = make("p", { class: "note" });
    const x = make("select", { class: "x", onchange: () => {
      view.x = x.value;
      panels.forEach((panel) => panel.zoomTo(null));
      keep(key("x"), view.x === run.x ? null : view.x);
      draw();
    } },
      ...run.quantities.filter(({ cost }) => cost).map(({ name, title }) => make("option", { value: name }, title)));
    x.value = view.x;
    const logX = make("input", { type: "checkbox", class: "log-x", onchange: () => {
      view.logX = logX.checked;
      keep(key("logx"), view.logX ? "yes" : null);
      draw();
    } });
    logX.checked = view.logX;
    const band = make("select", { class: "band", onchange: () => {
      view.band = band.value;
      keep(key("band"), view.band === (run.band ?? "range") ? null : view.band);
      draw();
    } },
      make("option", { value: "range" }, "minimum to maximum"), make("option", { value: "sd" }, "± standard deviation"),
      make("option", { value: "none" }, "none"));
    band.value = view.band;
    const toggle = (algorithm, n) => {
      const button = make("button", { type: "button", "aria-pressed": String(!view.off.has(n)), onclick: () => {
        const on = view.off.delete(n);
        if (!on) view.off.add(n);
        keep(key("off"), [...view.off].sort((a, b) => a - b).join("~"));
        button.setAttribute("aria-pressed", String(on));
        draw();
      } }, sample(algorithm), algorithm.name);
      return button;
    };
    const buttons = run.algorithms.map(toggle);
    place.replaceChildren(
      make("div", { class: "controls" }, make("label", {}, "Horizontal axis", x), make("label", {}, logX, "log"),
        make("label", {}, "Band", band)),
      make("div", { class: "algorithms", role: "group", "aria-label": "Algorithms" }, ...buttons),
      make("div", { class: "panels" }, ...panels.map((panel) => panel.element)), note);
    draw();
    redraws.push(draw);
  };

  const save = (name, type, text) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const csv = ({ columns, rows }) => {
    const cell = (value) => {
      const text = value == null ? "" : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  };

  const json = ({ columns, rows }) =>
    JSON.stringify(rows.map((row) => Object.fromEntries(row.map((value, k) => [columns[k], value]))), null, 1);

  document.querySelectorAll(".downloads").forEach((place) => {
    const run = data.runs[place.dataset.run];
    place.append(
      make("button", { type: "button", class: "csv", onclick: () => save(`${run.name}.csv`, "text/csv", csv(run.rows)) }, "Download rows as CSV"),
      make("button", { type: "button", class: "json", onclick: () => save(`${run.name}.json`, "application/json", json(run.rows)) }, "Download rows as JSON"));
    place.hidden = false;
  });

  // Several runs: the curves of all of them in one chart, and a filter.
  data.runs.forEach((run, n) => { run.key = n; });
  const overview = document.getElementById("overview");
  const all = { key: "all", band: "none", algorithms: [], quantities: [] };
  if (overview) {
    for (const run of data.runs) {
      for (const one of run.algorithms) {
        const style = data.styles[all.algorithms.length % data.styles.length];
        all.algorithms.push({ ...one, ...style, name: `${run.title} · ${one.name}` });
      }
      for (const one of run.quantities) if (!all.quantities.some(({ name }) => name === one.name)) all.quantities.push(one);
    }
    const [first] = data.runs;
    all.x = data.runs.every((run) => run.x === first.x) ? first.x : "iteration";
    all.y = first.y;
    // A row of the table is a curve of the chart.
    const rows = [...overview.querySelectorAll("tbody tr")];
    const filter = make("input", { type: "search", id: "filter", "aria-label": "Filter the runs", placeholder: "Filter: words of a run or an algorithm", oninput: () => {
      keep("filter", filter.value);
      sift();
      redraws.forEach((draw) => draw());
    } });
    filter.value = kept.get("filter") ?? "";
    const sift = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter((word) => word);
      const sections = new Set();
      rows.forEach((row, n) => {
        const text = row.textContent.toLowerCase();
        row.hidden = all.algorithms[n].filtered = !words.every((word) => text.includes(word));
        if (!row.hidden) sections.add(row.querySelector("a").getAttribute("href").slice(1));
      });
      document.querySelectorAll("section.run").forEach((section) => { section.hidden = !sections.has(section.id); });
    };
    overview.querySelector("h2").after(filter);
    sift();
  }
  const runOf = (place) => (place.dataset.run === "all" ? all : data.runs[place.dataset.run]);

  // Charts are drawn when they come near the viewport: a report may have many.
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      show(target, runOf(target));
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll(".charts").forEach((place) => {
    if (runOf(place).y.length) near.observe(place);
  });

  const theme = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const repaint = () => {
    theme.textContent = dark() ? "Light" : "Dark";
    redraws.forEach((draw) => draw());
  };
  theme.hidden = false;
  if (["light", "dark"].includes(kept.get("theme"))) document.documentElement.dataset.theme = kept.get("theme");
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    keep("theme", document.documentElement.dataset.theme);
    repaint();
  });
  prefersDark.addEventListener("change", repaint);
  repaint();
  // A page that is loaded again stays where it was.
  if (performance.getEntriesByType("navigation")[0]?.type !== "reload") place()?.scrollIntoView();
})();
