// Tests the page in Chromium against the program; exits with an error if a check fails.
//   usage: node check.js TRY.html PROFILE LOPA [FOLDER FOR SCREENSHOTS]
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file, profile, lopa, shots] = process.argv.slice(2);
const address = pathToFileURL(file).href;
const presets = JSON.parse(readFileSync(join(dirname(file), "presets.json"), "utf8"));
const work = mkdtempSync(join(dirname(file), "native-"));

const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium",
  headless: true,
  acceptDownloads: true,
  viewport: { width: 1360, height: 900 },
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

function program(...args) {
  const { status, stderr } = spawnSync(lopa, args, { encoding: "utf8" });
  assert.equal(status, 0, `lopa ${args.join(" ")}: ${stderr}`);
  return stderr;
}

// Runs the page's file with the program: its folder, and the digest that it prints.
function native(text) {
  const folder = mkdtempSync(join(work, "run-"));
  writeFileSync(join(folder, "try.toml"), text);
  const printed = program("run", join(folder, "try.toml"), "--out", join(folder, "runs"));
  const run = join(folder, "runs", readdirSync(join(folder, "runs"))[0]);
  const rows = readFileSync(join(run, "metrics.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return { folder: run, rows, results: JSON.parse(readFileSync(join(run, "results.json"), "utf8")), digest: printed.match(/trajectory digest (\w+)/)[1] };
}

const trouble = [];
async function open(hash = "", width = 1360, scheme = "light") {
  const page = await browser.newPage();
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(error.stack));
  page.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address && !url.startsWith("blob:")) trouble.push(`request for ${url}`);
  });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(`${address}${hash}`);
  return page;
}
const state = (page, ...wanted) => page.waitForFunction((wanted) => wanted.includes(document.body.dataset.state), wanted, { timeout: 600_000 });
const ended = async (page) => {
  await state(page, "done", "failed");
  assert.equal(await page.evaluate(() => document.body.dataset.state), "done", await page.locator("#status").innerText());
};
const computed = (page) => page.evaluate("runs"); // a variable of the page's script

try {
  // The same values as the program, and the same digests.
  let kept;
  for (const hash of [
    "#iterations=100",
    "#graph=random&classes=3&drop=30&compress=top-25&iterations=100&seed=4",
    "#graph=star&nodes=5&compress=quantise&iterations=100&alpha=2",
    "#graph=path&nodes=3&classes=10&compress=bf16&drop=10&iterations=100&seed=9",
  ]) {
    const page = await open(hash);
    await ended(page);
    const here = await computed(page);
    const there = native(await page.locator("#file").innerText());
    kept = there;
    assert.equal(there.results.length, 3);
    for (const result of there.results) {
      const mine = here[result.algorithm];
      assert.equal(mine.result.digest, result.digest, `${hash}: the digest of ${result.algorithm}`);
      const rows = there.rows.filter((row) => row.algorithm === result.algorithm);
      assert.ok(rows.length > 15 && mine.rows.length === rows.length, `${hash}: ${rows.length} rows`);
      rows.forEach((row, i) => {
        for (const [key, value] of Object.entries(row)) {
          if (["algorithm", "seed", "seconds", "check"].includes(key)) continue; // `check` is the sum of the line
          const off = Math.abs(mine.rows[i][key] - value);
          // Measures may use logarithms of the system; variables do not.
          assert.ok(off <= 1e-12 * Math.abs(value), `${hash}: ${key} of ${result.algorithm} at ${row.iteration}: ${mine.rows[i][key]} here, ${value} there`);
        }
      });
      const mean = mine.spread.reduce((sum, one) => sum + one, 0) / mine.spread.length;
      const { consensus } = mine.rows.at(-1);
      assert.ok(Math.abs(mean - consensus) <= 1e-9 * consensus, "the nodes' distances are those of the measure");
    }
    assert.equal(await page.locator("#digest").innerText(), there.digest, `${hash}: the digest that lopa prints`);
    await page.close();
  }

  // The buttons show what they say.
  const page = await open();
  await ended(page);
  const first = await computed(page);
  for (const [i, preset] of presets.entries()) {
    const button = page.locator("#presets button").nth(i);
    await button.click();
    await state(page, "running");
    await ended(page);
    assert.equal(await button.getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator("#lesson").innerText(), preset.lesson);
    const now = await computed(page);
    const value = (name) => {
      const words = name.split(" ");
      const runs = words[0] === "first" ? first : now;
      return runs[words.at(-2)].rows.at(-1)[words.at(-1)];
    };
    assert.ok(preset.shows.length > 0);
    for (const [more, less, factor] of preset.shows)
      assert.ok(value(more) >= factor * value(less), `${preset.title}: ${more} is ${value(more)}, ${less} is ${value(less)}`);
    if (shots) await page.screenshot({ path: `${shots}/try-${i}.png`, fullPage: true });
  }

  // Steps are automatic unless one is chosen, by keyboard too.
  assert.doesNotMatch(await page.locator("#file").innerText(), /alpha|beta|lambda/);
  const steps = page.locator("#set-alpha");
  assert.equal(await steps.getAttribute("aria-valuetext"), "automatic");
  for (const method of ["gt", "lg", "dgd"])
    assert.match(await page.locator(`#method-${method} dd`).nth(3).innerText(), /^[\d.e-]+$/, "the step that was found");
  await steps.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => /alpha = 0\.1, beta/.test(document.querySelector("#file").textContent));
  await page.keyboard.press("Home");
  await page.waitForFunction(() => !location.hash.includes("alpha"));

  // By keyboard; settings are in the address.
  await page.locator("#set-nodes").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => location.hash.includes("nodes=7"));
  await state(page, "running");
  assert.match(await page.locator("#file").innerText(), /nodes = 7/);
  assert.equal(await page.locator("#lesson").innerText(), "", "settings of one's own are no lesson");
  await page.locator("#halt").focus();
  await page.keyboard.press("Enter");
  await state(page, "stopped");
  await page.locator("#go").focus();
  await page.keyboard.press("Space");
  await ended(page);
  assert.equal(await page.locator("#method-gt .network circle").count(), 14, "seven nodes with a halo each");
  const picture = () => page.locator("#chart-0").innerHTML();
  const before = await picture();
  await page.locator("#measure").selectOption("test_accuracy");
  await page.waitForFunction((before) => document.querySelector("#chart-0").innerHTML !== before, before);
  const unnamed = await page.locator("input:visible, select:visible, button:visible").evaluateAll((all) =>
    all.filter((one) => !(one.labels?.length || one.textContent.trim())).map((one) => one.id));
  assert.deepEqual(unnamed, [], "every control has a name");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
  assert.equal(readFileSync(await saved.path(), "utf8"), await page.locator("#file").innerText().then((text) => text.endsWith("\n") ? text : `${text}\n`));

  // A step far too large: the run says so, and the page stays in use.
  const wild = await open("#alpha=8&iterations=100&nodes=3");
  await ended(wild);
  await wild.close();

  // The report of a run folder is that of the program, byte for byte.
  program("report", kept.folder, "--out", join(work, "report.html"));
  await page.locator("#folder").setInputFiles(kept.folder);
  const frame = page.frameLocator("#report");
  await frame.locator("canvas").first().waitFor();
  const [report] = await Promise.all([page.waitForEvent("download"), page.locator("#save-report").click()]);
  assert.equal(readFileSync(await report.path(), "utf8").trimEnd(), readFileSync(join(work, "report.html"), "utf8").trimEnd());
  assert.match(await page.locator("#opened").innerText(), /The report of/);
  if (shots) await page.screenshot({ path: `${shots}/try-report.png`, fullPage: true });
  const empty = join(work, "empty");
  mkdirSync(empty);
  writeFileSync(join(empty, "notes.txt"), "nothing");
  await page.locator("#folder").setInputFiles(empty);
  await page.waitForFunction(() => /no run folder/.test(document.querySelector("#opened").textContent));
  writeFileSync(join(empty, "manifest.json"), "{");
  await page.locator("#folder").setInputFiles(empty);
  await page.waitForFunction(() => /manifest\.json/.test(document.querySelector("#opened").textContent) && document.querySelector("#opened").classList.contains("bad"));
  await page.close();

  for (const [name, width, scheme] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["narrow", 390, "light"], ["narrow-dark", 360, "dark"]]) {
    const view = await open("#iterations=100&drop=20", width, scheme);
    await ended(view);
    await view.locator("details").evaluateAll((all) => all.forEach((one) => { one.open = true; }));
    const beyond = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `the ${name} page is ${beyond} pixels too wide`);
    if (shots) await view.screenshot({ path: `${shots}/try-${name}.png`, fullPage: true });
    await view.close();
  }
  assert.deepEqual(trouble, [], "no errors and no requests");
  console.log("the page works in Chromium, with the program's digests");
} finally {
  await browser.close();
}
