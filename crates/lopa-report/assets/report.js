"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const redraws = [];

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
    const xs = algorithm.points[view.x].mean;
    const { mean, sd, low, high } = algorithm.points[y];
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

  class Panel {
    constructor(run, view, y) {
      this.run = run;
      this.view = view;
      this.y = y;
      this.logY = this.quantity(y).log;
      const measures = run.quantities.filter((quantity) => !quantity.cost);
      const select = make("select", { "aria-label": "Vertical axis", class: "y", onchange: () => {
        this.y = select.value;
        this.logY = log.checked = this.quantity(this.y).log;
        this.draw();
      } }, ...measures.map(({ name, title }) => make("option", { value: name }, title)));
      select.value = y;
      const log = make("input", { type: "checkbox", class: "log-y", onchange: () => {
        this.logY = log.checked;
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
      this.shown = this.run.algorithms.filter((algorithm) => !view.off.has(algorithm.label));
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
        values: (_, splits) => splits.map((value) => raised(axisNumber(value))),
      });
      const scale = (log) => (log && some ? { time: false, distr: 3, range: decades } : { time: false, distr: 1 });
      this.plot = new uPlot({
        width: Math.max(chart.clientWidth, 200), height: 340, legend: { show: false },
        scales: { x: scale(view.logX), y: scale(this.logY) },
        axes: [axis(this.quantity(view.x).title, 52, view.logX), axis(this.quantity(this.y).title, 62, this.logY)],
        series, bands,
        padding: [null, 28, null, null], // half a tick label, in wide fonts too
        cursor: { points: { show: false }, y: false },
        hooks: { setCursor: [(plot) => this.hover(plot)], draw: [(plot) => this.cross(plot)] },
      }, joined, chart);
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

    /** Arrow keys move from point to point. */
    key(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") return this.hide();
      const xs = this.plot.data[0];
      if (!step || !xs.length) return;
      event.preventDefault();
      const fresh = this.tip.hidden;
      this.at = fresh || this.at === undefined ? (step > 0 ? 0 : xs.length - 1) : this.at + step;
      this.at = Math.min(Math.max(this.at, 0), xs.length - 1);
      this.plot.setCursor({ left: this.plot.valToPos(xs[this.at], "x"), top: 0 });
    }
  }

  const sample = ({ colour, dash }) => {
    const namespace = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(namespace, "svg");
    const line = document.createElementNS(namespace, "line");
    const set = (element, attributes) => Object.entries(attributes).forEach(([k, v]) => element.setAttribute(k, v));
    set(svg, { width: 24, height: 8, "aria-hidden": "true" });
    set(line, { x1: 0, x2: 24, y1: 4, y2: 4, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash.join(" ") });
    svg.append(line);
    return svg;
  };

  /** Replaces the static curves of a run by controls and charts. */
  const show = (place, run) => {
    const view = { x: run.x, logX: false, band: "range", off: new Set() };
    const panels = run.y.map((y) => new Panel(run, view, y));
    const draw = () => {
      panels.forEach((panel) => panel.draw());
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
    const x = make("select", { class: "x", onchange: () => { view.x = x.value; draw(); } },
      ...run.quantities.filter(({ cost }) => cost).map(({ name, title }) => make("option", { value: name }, title)));
    x.value = view.x;
    const logX = make("input", { type: "checkbox", class: "log-x", onchange: () => { view.logX = logX.checked; draw(); } });
    const band = make("select", { class: "band", onchange: () => { view.band = band.value; draw(); } },
      make("option", { value: "range" }, "minimum to maximum"), make("option", { value: "sd" }, "± standard deviation"),
      make("option", { value: "none" }, "none"));
    const toggle = (algorithm) => {
      const button = make("button", { type: "button", "aria-pressed": "true", onclick: () => {
        const on = view.off.delete(algorithm.label);
        if (!on) view.off.add(algorithm.label);
        button.setAttribute("aria-pressed", String(on));
        draw();
      } }, sample(algorithm), algorithm.name);
      return button;
    };
    place.replaceChildren(
      make("div", { class: "controls" }, make("label", {}, "Horizontal axis", x), make("label", {}, logX, "log"),
        make("label", {}, "Band", band)),
      make("div", { class: "algorithms", role: "group", "aria-label": "Algorithms" }, ...run.algorithms.map(toggle)),
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

  // Charts are drawn when they come near the viewport: a report may have many.
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      show(target, data.runs[target.dataset.run]);
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll(".charts").forEach((place) => {
    if (data.runs[place.dataset.run].y.length) near.observe(place);
  });

  const theme = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const repaint = () => {
    theme.textContent = dark() ? "Light" : "Dark";
    redraws.forEach((draw) => draw());
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    repaint();
  });
  prefersDark.addEventListener("change", repaint);
  repaint();
})();
