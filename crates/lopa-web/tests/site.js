// Tests the book's site in Chromium: every page, on a wide and on a narrow screen; exits with an error if a check fails.
//   usage: node site.js SITE PROFILE [FOLDER FOR SCREENSHOTS]
import assert from "node:assert/strict";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [site, profile, shots] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".woff2": "font/woff2" };

// A server of files, as the site needs no other.
const server = createServer((request, response) => {
  const path = join(site, normalize(decodeURIComponent(request.url.split(/[?#]/)[0])));
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, "index.html") : path;
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const home = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

const trouble = [];
let at = ""; // the page under test
const page = await browser.newPage();
page.on("console", (message) => {
  const rustdoc = /^A preload for .*\/api\/static\.files\//.test(message.text()); // its pages name fonts that they do not use
  if (["error", "warning"].includes(message.type()) && !rustdoc) trouble.push(`${at}: ${message.text()}`);
});
page.on("pageerror", (error) => trouble.push(`${at}: ${error.stack}`));
page.on("request", (request) => request.url().startsWith(home) || /^(data|blob):/.test(request.url()) || trouble.push(`${at}: request for ${request.url()}`));
page.on("response", (response) => response.status() < 400 || trouble.push(`${at}: ${response.status()} for ${response.url()}`));

async function open(name, width, scheme) {
  at = `${name}, ${width} pixels, ${scheme}`;
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(home + name);
}

try {
  const pages = readdirSync(site).filter((name) => name.endsWith(".html") && !["404.html", "print.html", "toc.html", "try.html"].includes(name));
  assert.ok(pages.length > 30, `${pages.length} pages`);
  const anchors = new Map(); // page → ids
  const links = []; // [page, target page, fragment]
  for (const name of pages) {
    for (const [width, scheme] of [[1280, "light"], [390, "dark"]]) {
      await open(name, width, scheme);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (beyond > 0) trouble.push(`${at}: ${beyond} pixels too wide`);
      const broken = await page.locator("main img").evaluateAll((all) => all.filter((one) => one.complete && !one.naturalWidth).map((one) => one.src));
      if (broken.length) trouble.push(`${at}: pictures that do not show: ${broken}`);
      if (shots) await page.screenshot({ path: `${shots}/${name.slice(0, -5)}-${width}.png` });
    }
    const { ids, hrefs, title } = await page.evaluate(() => ({
      ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
      hrefs: [...document.querySelectorAll("main a[href]")].map((one) => one.href),
      title: document.querySelector("main h1")?.textContent ?? "",
    }));
    if (!title.trim()) trouble.push(`${at}: no title`);
    anchors.set(name, new Set(ids));
    for (const href of hrefs) {
      const { origin, pathname, hash } = new URL(href);
      if (`${origin}/` === home && hash) links.push([name, decodeURIComponent(pathname).slice(1) || "index.html", decodeURIComponent(hash.slice(1))]);
    }
  }
  assert.ok(links.length > 50, `${links.length} links to places`);
  for (const [from, to, place] of links)
    if (anchors.has(to) && !anchors.get(to).has(place)) trouble.push(`${from}: ${to} has no place #${place}`);

  // Search, by keyboard.
  await open("index.html", 1280, "light");
  await page.keyboard.press("s");
  await page.locator("#mdbook-searchbar, #searchbar").first().waitFor({ state: "visible" });
  await page.keyboard.type("gradient tracking");
  const results = page.locator("#mdbook-searchresults a, #searchresults a");
  await results.first().waitFor();
  assert.ok((await results.count()) > 3, "search finds pages");
  if (shots) await page.screenshot({ path: `${shots}/search.png` });
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/highlight=|search=/);

  // From the first page to the page in which lopa runs, and to the documentation of the library.
  for (const [chapter, link, sign] of [["browser.html", "try.html", "#go"], ["api.html", "api/lopa/index.html", "h1"]]) {
    if (!existsSync(join(site, link))) { trouble.push(`${link} is missing`); continue; }
    await open(chapter, 1280, "light");
    await page.locator(`main a[href="${link}"]`).first().click();
    await page.locator(sign).first().waitFor();
  }
  assert.deepEqual(trouble, [], "no errors, no requests elsewhere, nothing too wide");
  console.log(`${pages.length} pages and ${links.length} links to places work in Chromium`);
} finally {
  await browser.close();
  server.close();
}
