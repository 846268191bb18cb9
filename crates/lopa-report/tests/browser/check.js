// Tests a report in Chromium; exits with an error if a check fails.
//   usage: node check.js REPORT.html PROFILE [FOLDER FOR SCREENSHOTS]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, profile, shots] = process.argv.slice(2);
const address = pathToFileURL(report).href;

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

try {
  const page = await browser.newPage();
  const trouble = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(error.stack));
  page.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address && !url.startsWith("blob:")) trouble.push(`request for ${url}`);
  });
  const run = page.locator("section.run").first();
  const picture = () => run.locator("canvas").first().evaluate((canvas) => canvas.toDataURL());
  const changes = async (what, action) => {
    const before = await picture();
    await action();
    assert.notEqual(await picture(), before, `${what} changes the plot`);
  };

  // The browser tells of a changed address a little later than the page has it: ask the page, and wait.
  const addressed = async (pattern) => {
    await page.waitForFunction((source) => new RegExp(source).test(location.href), pattern.source);
    return page.evaluate(() => location.href);
  };

  await page.goto(address);
  // Charts are drawn when they come near.
  await run.locator(".charts").scrollIntoViewIfNeeded();
  await run.locator("canvas").first().waitFor();
  assert.equal(await run.locator("canvas").count(), 2, "two charts replace the static curves");
  assert.equal(await run.locator(".still").count(), 0);

  const costs = await run.locator("select.x option").evaluateAll((all) => all.map((one) => one.value));
  assert.deepEqual(costs, ["iteration", "hessians", "jacobians", "gradients", "samples", "bytes", "exchanges", "seconds"]);
  for (const cost of costs.filter((cost) => cost !== "hessians"))
    await changes(`the axis ${cost}`, () => run.locator("select.x").selectOption(cost));
  const measures = await run.locator("select.y").first().locator("option").evaluateAll((all) => all.map((one) => one.value));
  assert.ok(measures.includes("loss") && measures.includes("consensus"), String(measures));
  await changes("the vertical axis", () => run.locator("select.y").first().selectOption("consensus"));
  await changes("a logarithmic vertical axis", () => run.locator("input.log-y").first().click());
  await changes("a logarithmic horizontal axis", () => run.locator("input.log-x").click());
  await changes("the band", () => run.locator("select.band").selectOption("none"));

  const button = run.locator(".algorithms button").first();
  await changes("hiding an algorithm", () => button.click());
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  await button.focus();
  await changes("showing it with the keyboard", () => page.keyboard.press("Space"));
  assert.equal(await button.getAttribute("aria-pressed"), "true");
  for (const one of await run.locator(".algorithms button").all()) await one.click();
  for (const one of await run.locator(".algorithms button").all()) await one.click();

  const tip = run.locator(".tip").first();
  await run.locator(".u-over").first().hover({ position: { x: 200, y: 100 } });
  await tip.waitFor();
  assert.match(await tip.innerText(), /lopa-gt/);
  await page.mouse.move(0, 0);
  await run.locator(".chart").first().focus();
  await page.keyboard.press("ArrowRight");
  const first = await tip.innerText();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await tip.innerText(), first, "arrow keys move along the curves");
  // Every key press shows something new, up to the last point.
  const seen = [first, await tip.innerText()];
  for (let k = 0; k < 500; k++) {
    await page.keyboard.press("ArrowRight");
    const text = await tip.innerText();
    if (text === seen.at(-1)) break;
    seen.push(text);
  }
  assert.ok(seen.length >= 3 && seen.length < 100, `${seen.length} stops`);
  assert.equal(new Set(seen).size, seen.length, "no stop twice");

  // The state is in the address: a page that is opened there looks the same.
  await run.locator("select.x").selectOption("seconds");
  await run.locator("select.y").first().selectOption("phi");
  await run.locator(".algorithms button").nth(1).click();
  await run.locator(".u-over").first().scrollIntoViewIfNeeded();
  const [left, right] = await run.locator(".u-over").first().boundingBox().then(({ x, y, width }) => [[x + width * 0.3, y + 50], [x + width * 0.6, y + 50]]);
  await page.mouse.move(...left);
  await page.mouse.down();
  await page.mouse.move(...right, { steps: 4 });
  await page.mouse.up();
  const state = await addressed(/#.*0\.x=seconds.*0\.zoom0=/);
  await page.mouse.move(0, 0);
  const before = await picture();
  const again = await browser.newPage();
  await again.setViewportSize({ width: 1360, height: 900 });
  await again.goto(state);
  const same = again.locator("section.run").first();
  await same.locator(".charts").scrollIntoViewIfNeeded();
  await same.locator("canvas").first().waitFor();
  assert.equal(await same.locator("select.x").inputValue(), "seconds");
  assert.equal(await same.locator("select.y").first().inputValue(), "phi");
  assert.equal(await same.locator(".algorithms button").nth(1).getAttribute("aria-pressed"), "false");
  assert.equal(await same.locator("canvas").first().evaluate((canvas) => canvas.toDataURL()), before, "the same picture");
  await again.close();

  // Several runs side by side, and a filter.
  const overview = page.locator("#overview");
  await overview.scrollIntoViewIfNeeded();
  await overview.locator("canvas").first().waitFor();
  const rows = overview.locator("tbody tr");
  const all = await rows.count();
  assert.equal(await overview.locator(".algorithms button").count(), all, "a curve for every row");
  await page.locator("#filter").fill("quickstart lopa");
  const visible = await rows.evaluateAll((rows) => rows.filter((row) => !row.hidden).map((row) => row.innerText));
  assert.ok(visible.length > 0 && visible.length < all, String(visible));
  assert.ok(visible.every((text) => /quickstart/.test(text) && /lopa/.test(text)), String(visible));
  assert.equal(await page.locator("section.run:visible").count(), 1, "the other run is hidden");
  await addressed(/filter=quickstart%20lopa/);
  await page.locator("#filter").fill("");
  assert.equal(await page.locator("section.run:visible").count(), 2);
  await page.locator("nav a", { hasText: "quadratic" }).click();
  await addressed(/#run-1&/);

  for (const [kind, check] of [
    ["csv", (text) => text.startsWith("algorithm,seed,iteration,") && text.split("\n").length > 20],
    ["json", (text) => JSON.parse(text)[0].algorithm === "lopa-gt"],
  ]) {
    const [download] = await Promise.all([page.waitForEvent("download"), run.locator(`button.${kind}`).click()]);
    assert.ok(check(readFileSync(await download.path(), "utf8")), `the ${kind} download`);
  }

  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await changes("the dark theme", () => page.locator("#theme").click());
  assert.notEqual(await ground(), light);

  for (const [name, width, scheme] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["narrow", 390, "light"], ["narrow-dark", 390, "dark"]]) {
    const view = await browser.newPage();
    await view.setViewportSize({ width, height: 900 });
    await view.emulateMedia({ colorScheme: scheme });
    await view.goto(address);
    await view.locator("canvas").first().waitFor();
    const beyond = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `the ${name} page is ${beyond} pixels too wide`);
    await view.locator("details").evaluateAll((all) => all.forEach((one) => { one.open = true; }));
    const cut = await view.locator(".wide").evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute("aria-label")));
    assert.deepEqual(cut, [], `tables that are cut on the ${name} page`);
    if (shots) {
      await view.locator("canvas").last().scrollIntoViewIfNeeded();
      await view.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
    }
    await view.close();
  }
  assert.deepEqual(trouble, [], "no errors and no requests");
  console.log("the report works in Chromium");
} finally {
  await browser.close();
}
